"""KTO: completions that are good or bad by themselves, weighed as prospect theory says people do."""

from __future__ import annotations

import torch
from torch import Tensor


def kto(
    ratios: Tensor,
    *,
    desirable: Tensor,
    kl: float,
    beta: float,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> Tensor:
    """KTO (arXiv 2402.01306, Eq. 8): λ_D (1 - σ(β (r - z₀))) if desirable, else λ_U (1 - σ(β (z₀ - r))).

    Args:
        ratios: [M] nats, r = log π / π_ref of the completion.
        desirable: [M] bool, its row's label.
        kl: z₀ in nats, at least 0: the KL to the reference, estimated with other rows' completions.
        beta: β.
        desirable_weight: λ_D.
        undesirable_weight: λ_U. The paper keeps λ_D · (desirable rows) / (λ_U · (undesirable rows)) between 1
            and 4/3 (§4.3).
    """
    gain = beta * (ratios - kl)
    loss = 1 - torch.sigmoid(torch.where(desirable, gain, -gain))
    return loss * torch.where(desirable, desirable_weight, undesirable_weight)
