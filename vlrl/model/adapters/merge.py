"""Merging adapters slice by slice: a rank adds the rows that its slice of W holds, and nobody gathers W.

DoRA's W' = m · (W + scale · B·A) / ||W + scale · B·A|| (arXiv 2402.09353, Eq. 5, by rows as peft has it)
needs the norm of whole rows, which may lie on several ranks: these add up their squares, one number a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vlrl.model.adapters.nf4 import Nf4Linear, gathered_slice
from vlrl.model.lora import (
    ADAPTER,
    BASE_INFIX,
    MAGNITUDE,
    adapted_layers,
    base_name,
    persistent_buffers,
    slice_of,
)

AddUp = Callable[[Tensor], object]
"""Puts the sum over ranks in a tensor's place; every rank must call it."""


class Adapter(NamedTuple):
    """One layer's adapter.

    Attributes:
        low: [rank, in], A.
        high: [out, rank], B.
        scale: alpha / rank, or alpha / √rank.
        magnitude: [out], m of DoRA; None without.
    """

    low: Tensor
    high: Tensor
    scale: float
    magnitude: Tensor | None = None

    @classmethod
    def of(cls, layer: Any, path: str, adapters: Mapping[str, Tensor], device: torch.device) -> Adapter:
        """That of a layer of peft's, by its path and the whole weights of `adapter_state`, on a device."""
        low, high = (adapters[f"{path}.lora_{half}.weight"].to(device) for half in "AB")
        magnitude = adapters.get(path + MAGNITUDE)
        return cls(
            low, high, float(layer.scaling[ADAPTER]), None if magnitude is None else magnitude.to(device)
        )


def merged_shards(
    model: nn.Module,
    adapters: Mapping[str, Tensor],
    rank: int,
    device: torch.device,
    add_up: AddUp = torch.distributed.all_reduce,
) -> Iterator[tuple[str, Tensor]]:
    """(name without adapters, this rank's flat slice with them added) of every parameter, then the buffers.

    A persistent buffer is yielded whole by every rank: it is rank 0's slice, and those of the others lie past
    its end, where nothing is taken from them. With DoRA or a 4-bit base every rank must go through them all.

    Args:
        model: partitioned by ZeRO-3.
        adapters: of `adapter_state`; empty without LoRA.
        rank: whose slices.
        device: that adds them, also to slices that lie elsewhere.
        add_up: sums over all ranks, for DoRA.
    """
    adapted = adapted_layers(model) if adapters else {}
    named: Iterable[tuple[str, Any]] = model.named_parameters()
    for name, parameter in named:
        published = base_name(name)
        if published is None:
            continue
        path = name.partition(BASE_INFIX)[0]
        if path in adapted and name.endswith(".weight") and BASE_INFIX in name:
            adapter = Adapter.of(adapted[path], path, adapters, device)
            base = adapted[path].base_layer
            shard = gathered_slice(base) if isinstance(base, Nf4Linear) else slice_of(parameter)
            shard = _merged(shard.to(device), adapter, rank * shard.numel(), add_up)
        else:
            shard = slice_of(parameter)
        yield published, shard
    for name, buffer in persistent_buffers(model):
        yield name, buffer.detach().flatten()


def _merged(shard: Tensor, adapter: Adapter, start: int, add_up: AddUp) -> Tensor:
    """A flat slice of W that begins at element `start`, with what the adapter makes of it.

    Args:
        shard: [n], padded past W's end, on the device that adds.
        adapter: on the same device.
        start: index into W flattened.
        add_up: sums over all ranks, for DoRA.
    """
    width, total = adapter.low.shape[1], len(adapter.high) * adapter.low.shape[1]
    start = min(start, total)
    end = min(start + shard.numel(), total)
    rows = slice(start // width, -(-end // width))
    inside = slice(start - rows.start * width, end - rows.start * width)
    delta = adapter.high[rows].float() @ adapter.low.float()
    weight = torch.zeros_like(delta)
    weight.view(-1)[inside] = shard.view(-1)[: end - start].float()
    merged = weight + delta * adapter.scale
    if adapter.magnitude is not None:
        norm = _norm(weight.to(shard.dtype), delta.to(shard.dtype), adapter, rows, inside, add_up)
        merged *= (adapter.magnitude[rows] / norm).float()[:, None]
    found = shard.clone()
    found.view(-1)[: end - start] = merged.view(-1)[inside].to(shard.dtype)
    return found


def _norm(
    weight: Tensor, delta: Tensor, adapter: Adapter, rows: slice, inside: slice, add_up: AddUp
) -> Tensor:
    """Norms of some rows of W + scale · B·A, rounded to the weights' dtype as peft's forward pass does.

    So the merged model of a new adapter is the model that there was, in bfloat16 too.

    Args:
        weight: [rows, in]; what is not of this rank is not read.
        delta: [rows, in], B·A.
        adapter: of the layer.
        rows: of W.
        inside: what is of this rank, in these rows flattened.
        add_up: sums over all ranks.
    """
    squares = torch.zeros(weight.shape, device=weight.device)
    moved = (weight + adapter.scale * delta).view(-1)[inside]
    squares.view(-1)[inside] = moved.float().square()
    sums = squares.new_zeros(len(adapter.high))
    sums[rows] = squares.sum(dim=1)
    add_up(sums)
    return sums[rows].sqrt().to(weight.dtype)
