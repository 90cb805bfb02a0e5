"""The clipped surrogate and its penalties, as pure functions of per-token tensors."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Nats; e^20 is 4.9e8."""


def clipped_surrogate(
    trainer_logprobs: Tensor,
    sampler_logprobs: Tensor,
    advantages: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> tuple[Tensor, Tensor]:
    """PPO's objective (arXiv 1707.06347, Eq. 7) with DAPO's separate bounds (arXiv 2503.14476, Eq. 8).

    loss_t = -min(ρ_t A_t, clip(ρ_t, 1 - clip_low, 1 + clip_high) A_t),  ρ_t = π_trainer / π_sampler, and if
    A_t < 0 at most -dual_clip · A_t (Ye et al., arXiv 1912.09729, Eq. 5): there the minimum has no bound, and
    one token that has become much likelier would outweigh the batch.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        sampler_logprobs: [M] nats, as recorded by the engine when it generated the token.
        advantages: [M].
        clip_low: how far the ratio may fall below 1 before its gradient stops.
        clip_high: how far it may rise above 1.
        dual_clip: the ratio, above 1, from which the gradient of a token with a negative advantage stops;
            None is never.

    Returns:
        (loss [M], clipped [M] bool: a bound was reached, so the gradient is zero).
    """
    ratio = ratio_of(trainer_logprobs - sampler_logprobs)
    free = ratio * advantages
    bounded = ratio.clamp(1.0 - clip_low, 1.0 + clip_high) * advantages
    value, clipped = torch.minimum(free, bounded), bounded < free
    if dual_clip is not None:
        is_far = (advantages < 0) & (ratio > dual_clip)
        value, clipped = torch.where(is_far, dual_clip * advantages, value), clipped | is_far
    return -value, clipped


def ratio_of(log_ratios: Tensor) -> Tensor:
    """Exp of [M] nats within ±20: beyond, neither value nor gradient grows, so that 0 · ∞ cannot make nan."""
    return log_ratios.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def kl_k3(trainer_logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """Schulman's unbiased, non-negative estimate of KL(trainer || reference), GRPO Eq. 4: e^d - d - 1.

    Args:
        trainer_logprobs: [M] nats.
        reference_logprobs: [M] nats.

    Returns:
        [M] nats.
    """
    delta = reference_logprobs - trainer_logprobs
    return torch.expm1(delta) - delta


def negative_log_likelihood(trainer_logprobs: Tensor) -> Tensor:
    """Supervised loss per token: [M] → [M] nats."""
    return -trainer_logprobs


def weighted_sum(per_token: Tensor, weights: Tensor) -> Tensor:
    """Σ_t w_t l_t; the weights (`vlrl.packing.pack`) carry the averaging rule and sum to 1 over the batch."""
    return (per_token * weights).sum()
