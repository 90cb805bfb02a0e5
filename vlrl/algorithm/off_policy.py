"""The loss of tokens that another policy generated than the one that is trained.

    π_b generated the token; its log-probability was recorded (sampler_logprobs)
    π_p is the proximal policy: the trust region is around it
    π_θ learns (trainer_logprobs)

The ratio π_θ / π_b = π_p / π_b · π_θ / π_p. The first factor corrects for who generated the token and is a
constant weight; the second one is PPO's and is clipped (decoupled PPO, Hilton et al., arXiv 2110.00641, §3).
What is made of the first one is a plug-in, see `vlrl.algorithm.corrections` and
`vlrl.config.asynchronous.bound_correction`.
A masked token still counts in the averages of `vlrl.packing.pack`, as in the papers' 1/|o|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from vlrl.algorithm.ordered import sums_by
from vlrl.config.algorithm import AlgorithmConfig, bound_loss
from vlrl.config.asynchronous import CorrectionConfig, bound_correction
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

    Raises:
        ConfigError: if the correction or the loss returns something else than it must.
    """
    correction, sampler = options.correction, batch.sampler_logprobs
    bound = bound_correction(correction)
    anchor = sampler
    if "proximal_logprobs" in bound.wanted:
        anchor = proximal_logprobs(trainer_logprobs, batch, correction)
    returned = bound(
        sampler,
        trainer_logprobs=trainer_logprobs,
        proximal_logprobs=anchor,
        advantages=batch.advantages,
        token_staleness=batch.token_staleness,
        sequence_sums=lambda values: sums(values, batch.sequence_ids),
    )
    own_loss = "trainer_logprobs" in bound.wanted
    if problem := correction_problem(returned, sampler, own_loss):
        raise ConfigError(f"algorithm.correction: {correction.kind!r} {problem}")
    age = staleness_weights(batch.token_staleness, correction.staleness_power)
    if own_loss:
        loss, stopped, limited = returned
        return Surrogate(age * loss, stopped, limited)
    weights, limited = returned
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
    return _problem(returned, ("loss", "stopped"), trainer_logprobs)


def correction_problem(returned: Any, sampler_logprobs: Tensor, own_loss: bool) -> str:
    """What is wrong with what a correction returned.

    Args:
        returned: a weight and a bool for each token; of one with a loss of its own that loss, and where its
            trust region and its bound acted.
        sampler_logprobs: [M].
        own_loss: whether it has a loss of its own.
    """
    if problem := _problem(
        returned, ("loss", "stopped", "limited") if own_loss else ("weights", "limited"), sampler_logprobs
    ):
        return problem
    if not own_loss and returned[0].requires_grad:
        return "must return weights without gradient; one that asks for trainer_logprobs returns a loss"
    return ""


def _problem(returned: Any, names: Sequence[str], like: Tensor) -> str:
    """What is wrong with numbers [M] and the bools [M] that come after them."""
    wanted = f"({names[0]} [M], {', '.join(f'{name} [M] bool' for name in names[1:])})"
    if (
        not isinstance(returned, tuple)
        or len(returned) != len(names)
        or not all(map(torch.is_tensor, returned))
    ):
        return f"must return {wanted}, not {type(returned).__name__}"
    if any(tensor.shape != like.shape for tensor in returned):
        shapes = " and ".join(str(list(tensor.shape)) for tensor in returned)
        return f"must return one number a token, [{len(like)}], and returned {shapes}"
    for name, tensor in zip(names[1:], returned[1:], strict=True):
        if tensor.dtype != torch.bool:
            return f"must return {name} as bool, not {tensor.dtype}"
    return ""


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


def staleness_weights(token_staleness: Tensor, power: float) -> Tensor:
    """FedAsync's polynomial of the age d (Xie et al., arXiv 1903.03934, §5.2): (1 + d)^-power, [M]."""
    return (1.0 + token_staleness.float()) ** -power
