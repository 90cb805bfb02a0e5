"""The optimizer that a rank trains with, by option."""

from __future__ import annotations

import sys

import pytest
import torch

from vlrl.config.memory import OptimConfig
from vlrl.errors import ConfigError
from vlrl.trainer.model import make_optimizer, set_options


def parameters() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.ones(8)), torch.nn.Parameter(torch.ones(8), requires_grad=False)]


def test_only_what_is_trained_has_states() -> None:
    given = parameters()
    made = make_optimizer(given, OptimConfig(lr=0.5, betas=(0.8, 0.9), weight_decay=0.1))
    [group] = made.param_groups
    assert [id(p) for p in group["params"]] == [id(given[0])]
    assert (group["lr"], group["betas"], group["weight_decay"]) == (0.5, (0.8, 0.9), 0.1)


def test_8_bit_moments_without_bitsandbytes_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(
        ConfigError, match=r"optim\.state=8bit needs bitsandbytes: pip install 'vlrl\[8bit\]'"
    ):
        make_optimizer(parameters(), OptimConfig(state="8bit"))


def test_a_checkpoint_s_options_give_way_to_the_config_s() -> None:
    weight = torch.nn.Parameter(torch.zeros(2))
    old = make_optimizer([weight], OptimConfig())
    new = make_optimizer([weight], OptimConfig(betas=(0.8, 0.9), eps=1e-6, lr=3.0))
    new.load_state_dict(old.state_dict())
    assert set_options(new.param_groups, OptimConfig(betas=(0.8, 0.9), eps=1e-6)) == [
        "optim.betas: (0.9, 0.95) in the checkpoint, (0.8, 0.9) from here on",
        "optim.eps: 1e-08 in the checkpoint, 1e-06 from here on",
    ]
    assert new.param_groups[0]["betas"] == (0.8, 0.9) and new.param_groups[0]["eps"] == 1e-6
    new.param_groups[0]["betas"] = [0.8, 0.9]
    assert set_options(new.param_groups, OptimConfig(betas=(0.8, 0.9), eps=1e-6)) == []
