"""Estimates of KL(policy || reference) as a penalty in the loss, over tokens of the policy.

Schulman 2020, "Approximating KL divergence", with d = log π - log π_ref; k3 is `vlrl.algorithm.loss.kl_k3`.
What an optimizer follows is the mean of their gradients: that of d is zero, that of d²/2 is d · ∇log π, whose
mean is the KL's gradient (arXiv 2510.01555), that of k3 is (1 - e^-d) · ∇log π, the gradient of the other
direction, KL(reference || policy), which is close to it near d = 0. Two other forms of k3 have the KL's own.
"""

from __future__ import annotations

from torch import Tensor

from vlrl.algorithm.loss import kl_k3, ratio_of


def k1(trainer_logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """d, with the gradient of k2: [M] nats. The mean of its own gradient is zero and restrains nothing."""
    penalty = k2(trainer_logprobs, reference_logprobs)
    return (trainer_logprobs - reference_logprobs).detach() + penalty - penalty.detach()


def k2(trainer_logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """d² / 2: [M] nats, biased as an estimate, unbiased in its gradient."""
    return (trainer_logprobs - reference_logprobs).square() / 2


def k3_plus(trainer_logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """k3 with the gradient of k2 (verl's k3+): [M] nats, without bias in its value and in its gradient.

    The gradient is without bias over tokens of the policy that learns.
    """
    penalty = k2(trainer_logprobs, reference_logprobs)
    return kl_k3(trainer_logprobs, reference_logprobs).detach() + penalty - penalty.detach()


def k3_unbiased(trainer_logprobs: Tensor, reference_logprobs: Tensor, *, sampler_logprobs: Tensor) -> Tensor:
    """DeepSeek-V3.2's estimate (arXiv 2512.02556, §3.1): π_θ / π_b · k3, [M] nats.

    Its mean over tokens of π_b is the KL of π_θ, so that the gradient is without bias however stale they are.
    At π_θ = π_b it is that of k2.
    """
    ratio = ratio_of(trainer_logprobs - sampler_logprobs)
    return ratio * kl_k3(trainer_logprobs, reference_logprobs)
