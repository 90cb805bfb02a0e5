"""Merging adapters slice by slice: W + scale · B·A, computed on the rank's device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from deepspeed.runtime.swap_tensor.partitioned_param_swapper import PartitionedParamStatus
from torch import Tensor, nn

from vlrl.config.memory import LoraConfig
from vlrl.model.lora import ADAPTER, add_adapters, merged_shards

RANK, SCALE = 2, 1.5


class Adapted(nn.Module):
    """A linear layer with an adapter, as peft has it."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.base_layer = nn.Linear(columns, rows, bias=False)
        self.lora_A = nn.ModuleDict({ADAPTER: nn.Linear(columns, RANK, bias=False)})
        self.lora_B = nn.ModuleDict({ADAPTER: nn.Linear(RANK, rows, bias=False)})
        self.scaling = {ADAPTER: SCALE}


class Router(nn.Module):
    """A layer with a buffer that belongs to its weights, and one that is computed from its config."""

    def __init__(self) -> None:
        super().__init__()
        self.correction = nn.Buffer(torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64))
        self.table = nn.Buffer(torch.zeros(5), persistent=False)


def model_of(num_ranks: int, rank: int) -> tuple[nn.Module, dict[str, Tensor]]:
    """A model whose parameters are split as ZeRO-3 does it, and its adapters' whole weights."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"proj": Adapted(5, 3), "norm": nn.LayerNorm(4), "router": Router()})
    for parameter in model.parameters():
        size = -(-parameter.numel() // num_ranks)
        padded = torch.zeros(size * num_ranks)
        padded[: parameter.numel()] = parameter.detach().flatten()
        slice_: Any = padded[rank * size : (rank + 1) * size]
        slice_.status = PartitionedParamStatus.AVAILABLE
        parameter.ds_tensor = slice_  # type: ignore[attr-defined]
    found = model["proj"]
    assert isinstance(found, Adapted)
    halves = {"A": found.lora_A, "B": found.lora_B}
    return model, {
        f"proj.lora_{h}.weight": m[ADAPTER].get_parameter("weight").detach() for h, m in halves.items()
    }


@pytest.mark.parametrize("num_ranks", [1, 2, 4])
def test_slices_side_by_side_are_the_merged_weight(num_ranks: int) -> None:
    pieces: dict[str, list[Tensor]] = {}
    for rank in range(num_ranks):
        model, adapters = model_of(num_ranks, rank)
        for name, shard in merged_shards(model, adapters, rank, torch.device("cpu")):
            pieces.setdefault(name, []).append(shard)
    assert list(pieces) == ["proj.weight", "norm.weight", "norm.bias", "router.correction"]
    base = dict(model.named_parameters())["proj.base_layer.weight"].detach()
    expected = base + SCALE * adapters["proj.lora_B.weight"] @ adapters["proj.lora_A.weight"]
    assert torch.allclose(torch.cat(pieces["proj.weight"])[:15].view(5, 3), expected)
    assert torch.equal(torch.cat(pieces["norm.weight"])[:4], torch.ones(4))
    whole = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    assert torch.equal(torch.cat(pieces["router.correction"])[:3], whole)


def test_the_rank_s_device_adds_also_where_slices_and_adapters_are_on_the_host() -> None:
    """The meta device stands for a GPU: what comes from it was computed there."""
    model, adapters = model_of(1, 0)
    found = dict(merged_shards(model, adapters, 0, torch.device("meta")))
    assert {name: shard.device.type for name, shard in found.items()} == {
        "proj.weight": "meta",
        "norm.weight": "cpu",
        "norm.bias": "cpu",
        "router.correction": "cpu",
    }


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
