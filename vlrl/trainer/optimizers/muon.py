"""Muon (arXiv 2502.16982) over the flat slices of ZeRO-3.

With G a matrix's gradient and μ optim.momentum, M ← μ·M + (1 - μ)·G, and the matrix moves along the
orthogonal matrix next to (1 - μ)·G + μ·M, all of whose singular values are near 1. Scaled by
0.2·√max(rows, columns) its values are as large as AdamW's mostly are (§2.2), so both have one learning rate
and one decay. This is torch.optim.Muon with adjust_lr_fn="match_rms_adamw".

Only the orthogonal matrix needs whole matrices. As many as there are ranks are gathered at a time, each on
another rank, which computes its own and gives the ranks their slices back; momenta stay slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import prod, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed, nn

from vlrl.errors import InternalError

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of X, (X·Xᵀ)·X and (X·Xᵀ)²·X in an iteration of Newton-Schulz; torch's."""
NUM_ITERATIONS = 5
SMALLEST_NORM = 1e-7
SHARE_OF_ADAMW = 0.2
"""Root mean square of AdamW's updates, roughly, in units of the learning rate."""
BUFFER = "momentum_buffer"


class MatrixSlice(NamedTuple):
    """A rank's part of a matrix: as long on every rank, the last ones padded."""

    shape: tuple[int, ...]
    length: int


class MuonAdamW(torch.optim.AdamW):
    """Muon for some matrices, AdamW for all other parameters; for a ZeRO-3 optimizer, see `follow_slices`."""

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        others: Iterable[nn.Parameter],
        momentum: float,
        **options: Any,
    ) -> None:
        """Set up.

        Args:
            matrices: [rows, columns] each.
            others: of any shape.
            momentum: μ.
            options: AdamW's; rate and decay are Muon's too.
        """
        groups: list[dict[str, Any]] = [
            {"params": list(matrices), "momentum": momentum},
            {"params": list(others)},
        ]
        super().__init__([group for group in groups if group["params"]], **options)
        self._slices: Mapping[Tensor, Sequence[MatrixSlice]] = {}
        self._device = torch.device("cpu")

    def follow(self, slices: Mapping[Tensor, Sequence[MatrixSlice]], device: torch.device) -> None:
        """Learn what lies in the flat tensors that take the matrices' place, and where to compute."""
        self._slices, self._device = slices, device

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update what has a gradient, which is not there afterwards; every rank must call it."""
        mine = [(group, group["params"]) for group in self.param_groups if "momentum" in group]
        for group, _ in mine:
            group["params"] = []
        loss = super().step(closure)
        for group, flats in mine:
            group["params"] = flats
            for flat in flats:
                if flat.grad is not None:
                    self._update(flat, group)
        return loss

    def _update(self, flat: Tensor, group: Mapping[str, Any]) -> None:
        if flat not in self._slices:
            raise InternalError("Muon was given weights that ZeRO-3 has not split; call follow_slices first")
        assert flat.grad is not None
        if not (state := self.state[flat]):  # torch's Adam loads no state without a step
            state.update({"step": torch.tensor(0.0), BUFFER: torch.zeros_like(flat)})
        state["step"] += 1
        momentum: Tensor = state[BUFFER]
        momentum.lerp_(flat.grad, 1 - group["momentum"])
        direction = flat.grad.lerp_(momentum, group["momentum"])
        flat.mul_(1 - group["lr"] * group["weight_decay"])
        slices, num_ranks = self._slices[flat], distributed.get_world_size()
        places = list(zip(slices, _parts(flat, slices), _parts(direction, slices), strict=True))
        for first in range(0, len(slices), num_ranks):
            few, moved, along = zip(*places[first : first + num_ranks], strict=True)
            for part, turned in zip(moved, self._turned(few, along), strict=True):
                part.add_(turned.to(part.device), alpha=-group["lr"])

    def _turned(self, few: Sequence[MatrixSlice], parts: Sequence[Tensor]) -> list[Tensor]:
        """This rank's slices of the orthogonal matrices, scaled; at most one of them is computed here."""
        rank, num_ranks = distributed.get_rank(), distributed.get_world_size()
        own: list[Tensor] | None = None
        for owner, part in enumerate(parts):
            here = part.to(self._device)
            all_parts = [torch.empty_like(here) for _ in range(num_ranks)] if rank == owner else None
            distributed.gather(here, all_parts, dst=owner)
            own = all_parts if all_parts is not None else own
        if own is not None:
            shape = few[rank].shape
            flat = torch.cat(own)
            matrix = flat[: prod(shape)].view(shape)
            matrix.copy_(orthogonal(matrix, newton_schulz_dtype(self._device)))
            matrix *= SHARE_OF_ADAMW * sqrt(max(shape))
            own = list(flat.chunk(num_ranks))  # past the matrix's end there are zeros still
        found = []
        for owner, part in enumerate(parts):
            mine = torch.empty_like(part, device=self._device)
            distributed.scatter(mine, own if rank == owner else None, src=owner)
            found.append(mine)
        return found


def follow_slices(zero: Any, device: torch.device) -> None:
    """Tell the optimizer inside a ZeRO-3 one how its flat tensors are made up; others need not know."""
    if not isinstance(zero.optimizer, MuonAdamW):
        return
    pairs = zip(zero.fp32_partitioned_groups_flat, zero.fp16_groups, strict=True)
    slices = {
        flat: [MatrixSlice(tuple(p.ds_shape), p.partition_numel()) for p in group] for flat, group in pairs
    }
    zero.optimizer.follow(slices, device)


def _parts(flat: Tensor, slices: Sequence[MatrixSlice]) -> list[Tensor]:
    """Views of the slices that lie in a flat tensor one after the other."""
    ends = list(accumulate(one.length for one in slices))
    return [flat.narrow(0, end - one.length, one.length) for end, one in zip(ends, slices, strict=True)]


def newton_schulz_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 as in torch, but on CPUs, most of which are slower with it."""
    return torch.float32 if device.type == "cpu" else torch.bfloat16


def orthogonal(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix of the same singular vectors whose singular values are near 1, of 0.7 to 1.2.

    Args:
        matrix: [rows, columns].
        dtype: to iterate in, and of the result.
    """
    a, b, c = COEFFICIENTS
    found = matrix.to(dtype, copy=True)
    if matrix.shape[0] > matrix.shape[1]:
        found = found.T
    found.div_(found.norm().clamp(min=SMALLEST_NORM))
    for _ in range(NUM_ITERATIONS):
        gram = found @ found.T
        found = torch.addmm(found, torch.addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.T if matrix.shape[0] > matrix.shape[1] else found
