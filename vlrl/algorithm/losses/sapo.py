"""SAPO: a smooth gate in place of clipping."""

from __future__ import annotations

import torch
from torch import Tensor

from vlrl.algorithm.loss import ratio_of


def sapo(
    trainer_logprobs: Tensor,
    anchor_logprobs: Tensor,
    advantages: Tensor,
    *,
    tau_pos: float = 1.0,
    tau_neg: float = 1.05,
) -> tuple[Tensor, Tensor]:
    """Soft adaptive policy optimisation (arXiv 2511.20347, Eq. 5 and 6).

        loss_t = -f(ρ_t) A_t,   f(x) = 4/τ · sigmoid(τ (x - 1)),   τ = tau_pos if A_t > 0, else tau_neg

    f'(1) = 1: at the policy that generated the token the gradient is the policy gradient's, and it falls off
    smoothly on both sides, faster for a larger τ.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        anchor_logprobs: [M] nats.
        advantages: [M].
        tau_pos: above 0.
        tau_neg: above 0; above tau_pos, because lowering one token raises all others.

    Returns:
        (loss [M], [M] bool: no token is stopped).
    """
    ratio = ratio_of(trainer_logprobs - anchor_logprobs)
    tau = torch.where(advantages > 0, tau_pos, tau_neg).to(ratio)
    gate = 4.0 / tau * torch.sigmoid(tau * (ratio - 1.0))
    return -gate * advantages, torch.zeros_like(advantages, dtype=torch.bool)
