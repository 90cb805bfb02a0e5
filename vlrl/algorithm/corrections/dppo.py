"""DPPO: a trust region on the probability itself, in place of one on its ratio."""

from __future__ import annotations

from torch import Tensor

from vlrl.algorithm.loss import ratio_of


def dppo(
    sampler_logprobs: Tensor,
    *,
    trainer_logprobs: Tensor,
    advantages: Tensor,
    dppo_threshold: float = 0.2,
    cap: float = 20.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """DPPO's objective with the binary total variation (Qi et al., arXiv 2602.04879): -M · π_θ/π_b · A.

    M = 0 if the token's probability has already moved by more than δ in the direction of its advantage:
    π_θ - π_b > δ and A > 0, or π_b - π_θ > δ and A < 0. A ratio bound stops rare tokens early and lets
    frequent ones move far; this one is on the probability itself. A rare token's ratio has no bound then: its
    gradient is at most that of the ratio C, -C · A.

    Args:
        sampler_logprobs: [M] nats.
        trainer_logprobs: [M] nats, with gradient.
        advantages: [M].
        dppo_threshold: δ.
        cap: C.

    Returns:
        (loss [M], masked [M] bool, capped [M] bool).
    """
    moved = trainer_logprobs.detach().exp() - sampler_logprobs.exp()
    masked = moved * advantages.sign() > dppo_threshold
    log_ratios = trainer_logprobs - sampler_logprobs
    free = ratio_of(log_ratios.detach())
    ratio = free.clamp(max=cap) * (log_ratios - log_ratios.detach()).exp()  # that is 1 and has the gradient
    capped = ~masked & (free > cap)
    return -(ratio * advantages).masked_fill(masked, 0.0), masked, capped
