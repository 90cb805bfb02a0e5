"""The critic's loss."""

from __future__ import annotations

import torch
from torch import Tensor


def value_loss(
    values: Tensor, old_values: Tensor, returns: Tensor, clip: float | None
) -> tuple[Tensor, Tensor]:
    """Half the squared error, in which a value gains nothing from moving further than `clip`.

        L_t = ½ max((V_t - R_t)², (V_old + clamp(V_t - V_old, -ε, ε) - R_t)²)

    It is the bound that PPO's code (arXiv 1707.06347; baselines, verl, OpenRLHF) puts on the critic; the
    paper's Eq. 9 has the plain squared error.

    Args:
        values: [M], with gradient.
        old_values: [M], before the step's first update; constants.
        returns: [M], constants.
        clip: ε; None is the plain squared error.

    Returns:
        ([M] loss, [M] bool where the bounded error is the larger one, so that the gradient is 0).
    """
    plain = (values - returns).square()
    if clip is None:
        return 0.5 * plain, torch.zeros_like(values, dtype=torch.bool)
    bounded = (old_values + (values - old_values).clamp(-clip, clip) - returns).square()
    return 0.5 * torch.maximum(plain, bounded), bounded > plain
