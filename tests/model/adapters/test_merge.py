"""Merging adapters slice by slice, computed on the rank's device: W + scale · B·A, and with DoRA."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from deepspeed.runtime.swap_tensor.partitioned_param_swapper import PartitionedParamStatus
from torch import Tensor, nn

from vlrl.config.memory import LoraConfig
from vlrl.model.adapters.merge import merged_shards
from vlrl.model.lora import ADAPTER, add_adapters

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


def split(model: nn.Module, num_ranks: int, rank: int) -> None:
    """Give a model's parameters the slices that ZeRO-3 leaves a rank."""
    for parameter in model.parameters():
        size = -(-parameter.numel() // num_ranks)
        padded = torch.zeros(size * num_ranks, dtype=parameter.dtype)
        padded[: parameter.numel()] = parameter.detach().flatten()
        slice_: Any = padded[rank * size : (rank + 1) * size]
        slice_.status = PartitionedParamStatus.AVAILABLE
        parameter.ds_tensor = slice_  # type: ignore[attr-defined]


def model_of(num_ranks: int, rank: int) -> tuple[nn.Module, dict[str, Tensor]]:
    """A model whose parameters are split as ZeRO-3 does it, and its adapters' whole weights."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"proj": Adapted(5, 3), "norm": nn.LayerNorm(4), "router": Router()})
    split(model, num_ranks, rank)
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


OUT, IN = 5, 3


def dora_model(dtype: torch.dtype, *, trained: bool) -> nn.Module:
    """A linear layer with DoRA, by peft; new, or as some steps may leave it."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"layers": nn.ModuleDict({"up": nn.Linear(IN, OUT)})}).to(dtype)
    add_adapters(model, LoraConfig(rank=RANK, targets=["*.up.weight"], dora=True), seed=0)
    layer: Any = model.get_submodule("layers.up")
    if trained:
        layer.lora_B[ADAPTER].weight.data.normal_()
        layer.lora_magnitude_vector[ADAPTER].weight.data.mul_(1.5)
    return model


def merged_by_ranks(dtype: torch.dtype, num_ranks: int, *, trained: bool) -> Tensor:
    """[OUT, IN] of as many ranks, each a thread: they add up a row's squares."""
    barrier, given = Barrier(num_ranks), [torch.empty(0)] * num_ranks

    def merged_by(rank: int) -> Tensor:
        def add_up(sums: Tensor) -> None:
            given[rank] = sums.clone()
            barrier.wait(timeout=60)
            sums.copy_(torch.stack(given).sum(dim=0))
            barrier.wait(timeout=60)

        split(models[rank], num_ranks, rank)
        state = {
            name.replace(f".{ADAPTER}.", "."): parameter.detach()
            for name, parameter in models[rank].named_parameters()
            if ".lora_" in name
        }
        return dict(merged_shards(models[rank], state, rank, torch.device("cpu"), add_up))["layers.up.weight"]

    models = [dora_model(dtype, trained=trained) for _ in range(num_ranks)]  # one generator for all threads
    with ThreadPoolExecutor(num_ranks) as pool:
        return torch.cat(list(pool.map(merged_by, range(num_ranks))))[: OUT * IN].view(OUT, IN)


@pytest.mark.parametrize("num_ranks", [1, 2, 4, 7, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dora_is_merged_as_by_peft_however_rows_are_cut(num_ranks: int, dtype: torch.dtype) -> None:
    """Equal up to a few roundings: peft rounds each of its operations, here the sum is rounded once."""
    layer: Any = dora_model(dtype, trained=True).get_submodule("layers.up")
    before = layer.base_layer.weight.detach().clone()
    layer.merge()
    expected = layer.base_layer.weight.detach()
    merged = merged_by_ranks(dtype, num_ranks, trained=True)
    assert (expected - before).abs().max() > 0.1
    few_roundings = 4 * torch.finfo(dtype).eps
    assert torch.allclose(merged.float(), expected.float(), rtol=few_roundings, atol=few_roundings)


def test_dora_s_closed_form_and_what_the_trainer_computes() -> None:
    """W' = m · (W + scale · B·A) / ||W + scale · B·A||, row by row."""
    layer: Any = dora_model(torch.float32, trained=True).get_submodule("layers.up")
    low, high = layer.lora_A[ADAPTER].weight.detach(), layer.lora_B[ADAPTER].weight.detach()
    moved = layer.base_layer.weight.detach() + layer.scaling[ADAPTER] * high @ low
    magnitude = layer.lora_magnitude_vector[ADAPTER].weight.detach()
    expected = magnitude[:, None] * moved / moved.norm(dim=1, keepdim=True)
    merged = merged_by_ranks(torch.float32, 2, trained=True)
    assert torch.allclose(merged, expected, atol=1e-6)
    given = torch.randn(4, IN)
    assert torch.allclose(layer(given), given @ merged.T + layer.base_layer.bias, atol=1e-6)


def test_a_new_adapter_with_dora_leaves_the_model_as_it_is() -> None:
    """The norm is rounded as the magnitude was, in bfloat16 to three digits."""
    layer: Any = dora_model(torch.bfloat16, trained=False).get_submodule("layers.up")
    assert torch.equal(merged_by_ranks(torch.bfloat16, 2, trained=False), layer.base_layer.weight)
    layer = dora_model(torch.float32, trained=False).get_submodule("layers.up")
    merged = merged_by_ranks(torch.float32, 2, trained=False)
    assert torch.allclose(merged, layer.base_layer.weight, rtol=2 * torch.finfo(torch.float32).eps, atol=0)
