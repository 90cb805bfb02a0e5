"""The optimizer that a rank trains with, by option."""

from __future__ import annotations

import sys

import pytest
import torch

from vlrl.errors import ConfigError
from vlrl.memory_options import OptimConfig
from vlrl.trainer_model import make_optimizer


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
