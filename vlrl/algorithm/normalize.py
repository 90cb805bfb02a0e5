"""Advantages in units of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vlrl.ledger import Credit
from vlrl.rounding import all_equal
from vlrl.types import Group


def batch_normalized(groups: Sequence[Group]) -> list[Group]:
    """REINFORCE++'s global normalisation (arXiv 2501.03262, §3): (A - mean) / std over all trained tokens.

    Args:
        groups: all of a step, with credits; members whose credit does not count have no part in it (law 7).

    Returns:
        The same trajectories with other credits; all advantages are 0 where they differ by rounding alone.
    """
    trained = [
        advantages[mask]
        for group in groups
        for credit in group.credits
        if credit.counts
        for advantages, mask in zip(credit.advantages, credit.trained, strict=True)
    ]
    values = np.concatenate(trained).astype(np.float64) if trained else np.zeros(0)
    mean, deviation = mean_and_deviation(values)
    return [Group(g.trajectories, [_scaled(c, mean, deviation) for c in g.credits]) for g in groups]


def mean_and_deviation(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Mean and population deviation of [N] numbers; (0, 0) if they differ by rounding alone."""
    return (0.0, 0.0) if all_equal(values) else (float(values.mean()), float(values.std()))


def _scaled(credit: Credit, mean: float, deviation: float) -> Credit:
    found = tuple(
        np.zeros_like(advantages) if not deviation else ((advantages - mean) / deviation).astype(np.float32)
        for advantages in credit.advantages
    )
    return replace(credit, advantages=found)
