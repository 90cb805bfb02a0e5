"""The optimizer that a rank trains with, by option and by device."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from builders import make_config

from vlrl.config import Config
from vlrl.config.memory import OptimConfig
from vlrl.errors import ConfigError
from vlrl.trainer.optimizers.make import make_optimizer, set_fused, set_options


def config_of(**optim: Any) -> Config:
    return make_config(optim=optim)


def parameters() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.ones(8)), torch.nn.Parameter(torch.ones(8), requires_grad=False)]


def test_only_what_is_trained_has_states() -> None:
    given = parameters()
    made = make_optimizer(given, config_of(lr=0.5, betas=(0.8, 0.9), weight_decay=0.1), "cpu")
    [group] = made.param_groups
    assert [id(p) for p in group["params"]] == [id(given[0])]
    assert (group["lr"], group["betas"], group["weight_decay"]) == (0.5, (0.8, 0.9), 0.1)


def test_8_bit_moments_without_bitsandbytes_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(
        ConfigError, match=r"optim\.state=8bit needs bitsandbytes: pip install 'vlrl\[8bit\]'"
    ):
        make_optimizer(parameters(), config_of(state="8bit"), "cpu")


def test_a_checkpoint_s_options_give_way_to_the_config_s() -> None:
    weight = torch.nn.Parameter(torch.zeros(2))
    old = make_optimizer([weight], config_of(), "cpu")
    new = make_optimizer([weight], config_of(betas=(0.8, 0.9), eps=1e-6, lr=3.0), "cpu")
    new.load_state_dict(old.state_dict())
    assert set_options(new.param_groups, OptimConfig(betas=(0.8, 0.9), eps=1e-6)) == [
        "optim.betas: (0.9, 0.95) in the checkpoint, (0.8, 0.9) from here on",
        "optim.eps: 1e-08 in the checkpoint, 1e-06 from here on",
    ]
    assert new.param_groups[0]["betas"] == (0.8, 0.9) and new.param_groups[0]["eps"] == 1e-6
    new.param_groups[0]["betas"] = [0.8, 0.9]
    assert set_options(new.param_groups, OptimConfig(betas=(0.8, 0.9), eps=1e-6)) == []


@pytest.mark.parametrize(
    ("device_type", "sections", "fused"),
    [
        ("cpu", {}, None),
        ("cuda", {}, True),
        ("cuda", {"trainer": {"offload_optimizer": True}}, None),
    ],
)
def test_adamw_is_fused_on_a_gpu_alone(
    device_type: str, sections: dict[str, Any], fused: bool | None
) -> None:
    made = make_optimizer(parameters(), make_config(**sections), device_type)
    assert made.param_groups[0]["fused"] is fused


def test_a_checkpoint_s_unfused_update_is_fused_again_where_that_is_wanted() -> None:
    """torch would go on as the checkpoint's run did, slower, and says nothing."""
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    unfused, fused = (make_optimizer([weight], make_config(), kind) for kind in ("cpu", "cuda"))
    unfused.step()
    fused.load_state_dict(unfused.state_dict())
    assert not fused.param_groups[0]["fused"]
    set_fused(fused, True)
    assert fused.param_groups[0]["fused"] is True
    before = weight.detach().clone()
    fused.step()
    assert fused.state[weight]["step"] == 2
    assert (weight < before).all()
    unfused.load_state_dict(fused.state_dict())
    set_fused(unfused, False)
    assert unfused.param_groups[0]["fused"] is None
    assert unfused.state[weight]["step"].device.type == "cpu"
