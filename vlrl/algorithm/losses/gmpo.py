"""GMPO: the geometric mean of a sequence's clipped ratios."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from vlrl.algorithm.loss import ratio_of


def gmpo(
    trainer_logprobs: Tensor,
    anchor_logprobs: Tensor,
    advantages: Tensor,
    *,
    sequence_sums: Callable[[Tensor], Tensor],
    low: float = 0.4,
    high: float = 0.4,
) -> tuple[Tensor, Tensor]:
    """Geometric-mean policy optimisation (arXiv 2507.20673, §3), in log space.

        u_t = min(log ρ_t, high) if A_t > 0, else max(log ρ_t, -low)
        loss_t = -A_t · exp(1/|o| Σ_t u_t)

    The bound is that of PPO's minimum, on the side on which the advantage pushes. A sequence's losses,
    averaged, have the value and the gradient of the paper's objective: 1/|o| · ∇u_t for each of its tokens.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        anchor_logprobs: [M] nats.
        advantages: [M].
        sequence_sums: every token's sum over its sequence, without gradient.
        low: bound of log ρ_t below, in nats.
        high: bound above; both are the paper's (e^-0.4, e^0.4).
    """
    log_ratios = trainer_logprobs - anchor_logprobs
    bounded = torch.where(advantages > 0, log_ratios.clamp(max=high), log_ratios.clamp(min=-low))
    bounded = torch.where(advantages == 0, log_ratios, bounded)
    constant = bounded.detach()
    lengths = sequence_sums(torch.ones_like(constant))
    geometric = ratio_of(sequence_sums(constant) / lengths)
    return -advantages * geometric * (bounded - constant).exp(), constant != log_ratios.detach()
