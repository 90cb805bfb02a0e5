"""Adapters as peft puts them beside a model's layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from vlrl.config.memory import LoraConfig
from vlrl.model.lora import ADAPTER, add_adapters


@pytest.mark.parametrize(("rslora", "scale"), [(False, 32 / 16), (True, 32 / 4)])
def test_the_scale_is_alpha_by_the_rank_or_by_its_root(rslora: bool, scale: float) -> None:
    model = nn.ModuleDict({"layers": nn.ModuleDict({"up": nn.Linear(8, 8)})})
    add_adapters(model, LoraConfig(rank=16, alpha=32, targets=["*.up.weight"], rslora=rslora), seed=0)
    layer: Any = model.get_submodule("layers.up")
    assert layer.scaling == {ADAPTER: scale}
    layer.lora_B[ADAPTER].weight.data.fill_(0.5)
    given = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    added = given @ layer.lora_A[ADAPTER].weight.T @ layer.lora_B[ADAPTER].weight.T
    assert torch.allclose(layer(given), layer.base_layer(given) + scale * added, atol=1e-5)
