"""Numbers of all ranks' tokens on every rank, as far as a step needs them."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


def of_all_ranks(mine: Tensor) -> tuple[Tensor, int]:
    """Every rank's rows, in the order of the ranks; every rank must call it.

    Args:
        mine: [M, C] float32 or float64, another M on each rank.

    Returns:
        ([N, C] on the host, the row at which this rank's begin).
    """
    lengths = [torch.zeros(1, dtype=torch.int64, device=mine.device) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, torch.tensor([len(mine)], device=mine.device))
    counts = [int(length) for length in lengths]
    padded = mine.new_zeros(max(counts), mine.shape[1])
    padded[: len(mine)] = mine
    parts = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(parts, padded)
    rows = [part[:count].cpu() for part, count in zip(parts, counts, strict=True)]
    return torch.cat(rows), sum(counts[: dist.get_rank()])


def sums_of_ranks(values: list[float], device: torch.device) -> list[float]:
    """Each number added up over the ranks in float64; every rank must call it."""
    total = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return [float(value) for value in total]
