"""What is done about tokens that another policy generated than the one that learns, as pure functions.

    π_b generated the token; its log-probability was recorded (sampler_logprobs)
    π_p is the proximal policy: the trust region is around it
    π_θ learns (trainer_logprobs)

The ratio π_θ / π_b = π_p / π_b · π_θ / π_p. The first factor corrects for who generated the token and is a
constant weight; the second one is PPO's and is clipped (decoupled PPO, Hilton et al., arXiv 2110.00641, §3).
A masked token still counts in the averages of `vlrl.packing.pack`, as in the papers' 1/|o|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from vlrl.algorithm.loss import ratio_of
from vlrl.algorithm.ordered import sums_by
from vlrl.config.algorithm import AlgorithmConfig, bound_loss
from vlrl.config.asynchronous import CorrectionConfig
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    from vlrl.model.logprobs import DeviceBatch

SumsFn: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(values [M], sequence ids [M]) → every token's sum over its sequence, see `sequence_sums`."""


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The objective of each token, and what was done to it.

    Attributes:
        loss: [M], with gradient.
        stopped: [M] bool, the trust region stopped the token's gradient.
        limited: [M] bool, its weight was truncated or masked.
    """

    loss: Tensor
    stopped: Tensor
    limited: Tensor


def sequence_sums(values: Tensor, sequence_ids: Tensor) -> Tensor:
    """Every token gets its sequence's sum: [M] and [M] int64 → [M]."""
    if not len(values):
        return values
    return sums_by(sequence_ids, values, int(sequence_ids.max()) + 1)[sequence_ids]


def corrected_surrogate(
    trainer_logprobs: Tensor, batch: DeviceBatch, options: AlgorithmConfig, sums: SumsFn = sequence_sums
) -> Surrogate:
    """The policy's loss per token under algorithm.correction.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        batch: of the tokens' log π_b, advantages, ages, sequences, and log π_p where it was recomputed; where
            not, this is the step's first update, and π_p is π_θ before it.
        options: clipping bounds and the correction.
        sums: over sequences; of ranks that have slices of them `vlrl.model.sequence_parallel.shared_sums`.
    """
    correction, sampler = options.correction, batch.sampler_logprobs
    age = staleness_weights(batch.token_staleness, correction.staleness_power)
    if correction.kind == "dppo":
        loss, stopped, limited = divergence_masked(
            trainer_logprobs,
            sampler,
            batch.advantages,
            threshold=correction.dppo_threshold,
            cap=correction.largest_weight,
        )
        return Surrogate(age * loss, stopped, limited)
    if correction.kind in ("none", "auto"):  # auto is left where no config has said the model's dtype
        anchor, weights = sampler, torch.ones_like(sampler)
        limited = torch.zeros_like(sampler, dtype=torch.bool)
    else:
        anchor = proximal_logprobs(trainer_logprobs, batch, correction)
        weights, limited = importance_weights(anchor - sampler, batch.sequence_ids, correction, sums)
    loss, stopped = policy_loss(trainer_logprobs, anchor, batch, options, sums)
    return Surrogate(age * weights * loss, stopped, limited)


def policy_loss(
    trainer_logprobs: Tensor,
    anchor_logprobs: Tensor,
    batch: DeviceBatch,
    options: AlgorithmConfig,
    sums: SumsFn,
) -> tuple[Tensor, Tensor]:
    """The loss that the config names: (loss [M], [M] bool where its trust region acted).

    Raises:
        ConfigError: if it returns something else.
    """
    returned = bound_loss(options)(
        trainer_logprobs,
        anchor_logprobs,
        batch.advantages,
        sequence_sums=lambda values: sums(values, batch.sequence_ids),
        sampler_logprobs=batch.sampler_logprobs,
    )
    if problem := shape_problem(returned, trainer_logprobs):
        raise ConfigError(f"algorithm.loss: {options.loss.name!r} {problem}")
    loss, stopped = returned
    return loss, stopped


def shape_problem(returned: Any, trainer_logprobs: Tensor) -> str:
    """What is wrong with what a loss returned; empty if it is a loss and a bool for each token."""
    if not isinstance(returned, tuple) or len(returned) != 2 or not all(map(torch.is_tensor, returned)):
        return f"must return (loss [M], stopped [M] bool), not {type(returned).__name__}"
    loss, stopped = returned
    if loss.shape != trainer_logprobs.shape or stopped.shape != trainer_logprobs.shape:
        shapes = f"{list(loss.shape)} and {list(stopped.shape)}"
        return f"must return one number a token, [{len(trainer_logprobs)}], and returned {shapes}"
    return "" if stopped.dtype == torch.bool else f"must return stopped as bool, not {stopped.dtype}"


def proximal_logprobs(trainer_logprobs: Tensor, batch: DeviceBatch, correction: CorrectionConfig) -> Tensor:
    """The proximal policy's log π_p [M], without gradient."""
    current = trainer_logprobs.detach()
    if correction.proximal == "interpolated":
        return interpolated_logprobs(current, batch.sampler_logprobs, batch.token_staleness)
    return current if batch.proximal_logprobs is None else batch.proximal_logprobs


def interpolated_logprobs(
    trainer_logprobs: Tensor, sampler_logprobs: Tensor, token_staleness: Tensor
) -> Tensor:
    """A-3PO's proximal policy (Li et al., arXiv 2512.06547, §3): log-linear in the token's age d.

    log π_p = 1/d · log π_b + (1 - 1/d) · log π_θ, the policy one update behind π_θ if all updates were alike.
    For d = 0 it is π_b, as in AReaL's code: with π_θ itself there would be no trust region.

    Args:
        trainer_logprobs: [M] nats, without gradient.
        sampler_logprobs: [M] nats.
        token_staleness: [M] int, d.
    """
    share = 1.0 / token_staleness.clamp(min=1).to(trainer_logprobs.dtype)
    return trainer_logprobs + share * (sampler_logprobs - trainer_logprobs)


def importance_weights(
    log_ratios: Tensor, sequence_ids: Tensor, correction: CorrectionConfig, sums: SumsFn = sequence_sums
) -> tuple[Tensor, Tensor]:
    """The weight f(ρ) of each token, ρ = π_p / π_b.

    decoupled  min(ρ, C)               Hilton et al., arXiv 2110.00641, §3; AReaL, arXiv 2505.24298, Eq. 5
                                       (without a bound: C is large)
    truncated  min(ρ, C)               Yao et al. 2025, "Your efficient RL framework secretly brings you
                                       off-policy RL training"; Ionides 2008, "Truncated importance sampling"
    masked     ρ if ρ ≤ C, else 0      Liu, Li et al. 2025, "When speed kills stability", §4.2
    icepop     ρ if α ≤ ρ ≤ β, else 0  Ring-1T, arXiv 2510.18855, §IcePop: M(k; α, β)
    uncorrected  1                     what is lost without any of these

    Args:
        log_ratios: [M] nats, log ρ of each token, without gradient.
        sequence_ids: [M] int64; with level "sequence" ρ is the product over the tokens of a ledger.
        correction: which of them.
        sums: over sequences.

    Returns:
        (weights [M], limited [M] bool: f(ρ) is not ρ).
    """
    if correction.kind == "uncorrected":
        return torch.ones_like(log_ratios), torch.zeros_like(log_ratios, dtype=torch.bool)
    if correction.level == "sequence":
        log_ratios = sums(log_ratios, sequence_ids)
    ratios = log_ratios.exp()
    cap = correction.largest_weight
    if correction.kind in ("truncated", "decoupled"):
        return ratios.clamp(max=cap), ratios > cap
    if correction.kind == "masked":
        limited = ratios > cap
    else:
        limited = (ratios < correction.icepop_low) | (ratios > correction.icepop_high)
    return ratios.masked_fill(limited, 0.0), limited  # not a product: infinity times 0 is not a number


def divergence_masked(
    trainer_logprobs: Tensor, sampler_logprobs: Tensor, advantages: Tensor, *, threshold: float, cap: float
) -> tuple[Tensor, Tensor, Tensor]:
    """DPPO's objective with the binary total variation (Qi et al., arXiv 2602.04879): -M · π_θ/π_b · A.

    M = 0 if the token's probability has already moved by more than δ in the direction of its advantage:
    π_θ - π_b > δ and A > 0, or π_b - π_θ > δ and A < 0. A ratio bound stops rare tokens early and lets
    frequent ones move far; this one is on the probability itself. A rare token's ratio has no bound then: its
    gradient is at most that of the ratio C, -C · A.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        sampler_logprobs: [M] nats.
        advantages: [M].
        threshold: δ.
        cap: C.

    Returns:
        (loss [M], masked [M] bool, capped [M] bool).
    """
    moved = trainer_logprobs.detach().exp() - sampler_logprobs.exp()
    masked = moved * advantages.sign() > threshold
    log_ratios = trainer_logprobs - sampler_logprobs
    free = ratio_of(log_ratios.detach())
    ratio = free.clamp(max=cap) * (log_ratios - log_ratios.detach()).exp()  # that is 1 and has the gradient
    capped = ~masked & (free > cap)
    return -(ratio * advantages).masked_fill(masked, 0.0), masked, capped


def staleness_weights(token_staleness: Tensor, power: float) -> Tensor:
    """FedAsync's polynomial of the age d (Xie et al., arXiv 1903.03934, §5.2): (1 + d)^-power, [M]."""
    return (1.0 + token_staleness.float()) ** -power
