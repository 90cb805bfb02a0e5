"""Losses of whole groups as losses of their tokens, so that no sum carries a gradient.

A group is a pair, chosen (advantage 1) and rejected (-1), or one completion with a label, 1 or -1, and beside
it one of another row (0), which only the estimate of KL reads. A loss ℓ(c, r) of the log-ratios

    c = Σ log π/π_ref over the chosen tokens        r = the same over the rejected ones

has the gradient ∂ℓ/∂c Σ ∇log π_t + ∂ℓ/∂r Σ ∇log π_t, each sum over its own tokens. So a token's loss is

    ℓ / n + sg[∂ℓ/∂c or ∂ℓ/∂r] · (log π_t - sg[log π_t])

with n tokens of the group: summed over the group it has the value and the gradient of ℓ, on whichever ranks
its tokens lie. A reward model's score stands in the place of a completion's one trained token's log π, and an
advantage of ±(1 + m) gives a pair the margin m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vlrl.algorithm.off_policy import SumsFn
from vlrl.config.learning.preferences import PreferencesConfig, bound_preference
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    from vlrl.model.logprobs import DeviceBatch

GroupSums: TypeAlias = npt.NDArray[np.float64]
"""[len(COLUMNS)] sums over groups; ranks and micro-batches add up."""

COLUMNS = ("groups", "loss", "right", "chosen", "rejected", "chosen_reward", "rejected_reward",
           "chosen_logprob", "rejected_logprob")  # fmt: skip


@dataclass(frozen=True, slots=True)
class PreferenceObjective:
    """The loss that is minimised over groups.

    Attributes:
        options: the loss and its options.
        kl: z₀ of KTO in nats, at least 0; 0 for losses that do not ask for it.
    """

    options: PreferencesConfig
    kl: float = 0.0


@dataclass(frozen=True, slots=True)
class PreferenceLoss:
    """The loss of each token, and what describes its groups.

    Attributes:
        loss: [M], with gradient.
        sums: of COLUMNS over groups, of which each token has its part.
        kl: Σ weight · log π/π_ref over the tokens of other rows' completions, whose sum over all ranks is
            the estimate of KL, in nats.
    """

    loss: Tensor
    sums: GroupSums
    kl: float


def no_groups() -> GroupSums:
    """The sums over no groups."""
    return np.zeros(len(COLUMNS))


def preference_losses(
    trainer_logprobs: Tensor,
    reference_logprobs: Tensor | None,
    batch: DeviceBatch,
    objective: PreferenceObjective,
    sums: SumsFn,
) -> PreferenceLoss:
    """The loss of each token of whole groups.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        reference_logprobs: [M] nats; None for a uniform reference, which cancels in a pair of one length.
        batch: of which advantages, group_ids and weights are read.
        objective: what is minimised.
        sums: over groups, see `vlrl.algorithm.off_policy`.

    Raises:
        ConfigError: if the loss returns something else than a number for each of its log-ratios.
    """
    current = trainer_logprobs.detach()
    log_ratios = current if reference_logprobs is None else current - reference_logprobs
    is_chosen, is_rejected = batch.advantages > 0, batch.advantages < 0
    own = is_chosen | is_rejected
    ids = batch.sequence_ids if batch.group_ids is None else batch.group_ids
    values = torch.stack([log_ratios, current, torch.ones_like(current)])
    margin = (batch.advantages - 1) * is_chosen
    of_tokens = torch.cat(
        [values * is_chosen, values * is_rejected, margin[None]]
    ).T  # one collective, [M, 7]
    totals = sums(of_tokens.contiguous(), ids).unbind(1)
    chosen, chosen_logprob, num_chosen, rejected, rejected_logprob, num_rejected, margin = totals
    groups = _Groups(chosen, rejected, num_chosen, num_rejected, margin)
    value, chosen_slope, rejected_slope = _value_and_slopes(groups, objective)
    share = own / (num_chosen + num_rejected).clamp(min=1)  # each token's of its group
    slope = torch.where(is_chosen, chosen_slope, rejected_slope) * own
    columns = (
        *(torch.ones_like(value), value, _right(groups, objective)),
        *(num_chosen > 0, num_rejected > 0),
        *(objective.options.reward_scale * chosen, objective.options.reward_scale * rejected),
        *(chosen_logprob, rejected_logprob),
    )
    table = torch.stack([column.double() for column in columns], dim=1) * share.double()[:, None]
    return PreferenceLoss(
        loss=share * value + slope * (trainer_logprobs - current),
        sums=table.sum(dim=0).cpu().numpy(),
        kl=float((batch.weights * log_ratios * ~own).sum()),
    )


class _Groups(NamedTuple):
    """Each token's group: [M] log-ratios of its chosen and its rejected tokens, how many they are, margin."""

    chosen: Tensor
    rejected: Tensor
    num_chosen: Tensor
    num_rejected: Tensor
    margin: Tensor


def _value_and_slopes(groups: _Groups, objective: PreferenceObjective) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each token's group [M], and its derivatives by both log-ratios [M]; without gradient."""
    options = objective.options
    bound = bound_preference(options)
    with torch.enable_grad():
        chosen, rejected = (ratios.detach().requires_grad_() for ratios in groups[:2])
        if options.is_unpaired:
            value = bound(chosen + rejected, desirable=groups.num_chosen > 0, kl=objective.kl)
        else:
            context = {"chosen_lengths": groups.num_chosen, "rejected_lengths": groups.num_rejected}
            value = bound(chosen, rejected, **context, margins=groups.margin)
        if not torch.is_tensor(value) or value.shape != chosen.shape:
            shape = list(value.shape) if torch.is_tensor(value) else type(value).__name__
            raise ConfigError(
                f"preferences.loss: {options.loss.name!r} must return one number for each log-ratio, "
                f"[{len(chosen)}], and returned {shape}"
            )
        by_chosen, by_rejected = torch.autograd.grad(value.sum(), (chosen, rejected), materialize_grads=True)
    return value.detach(), by_chosen, by_rejected


def _right(groups: _Groups, objective: PreferenceObjective) -> Tensor:
    """1 where a pair is in its order, or a completion on its label's side of z₀; half where equal: [M]."""
    margin = groups.chosen - groups.rejected
    if objective.options.is_unpaired:
        margin = margin - torch.where(groups.num_chosen > 0, objective.kl, -objective.kl)
    return (margin > 0).to(margin.dtype) + 0.5 * (margin == 0)


def preference_metrics(sums: GroupSums, options: PreferencesConfig) -> dict[str, float]:
    """Means over groups, without the part of a kind that did not occur; none without a group."""
    of = dict(zip(COLUMNS, sums.tolist(), strict=True))
    if not of["groups"]:
        return {}
    found = {"preference/loss": of["loss"] / of["groups"], "preference/accuracy": of["right"] / of["groups"]}
    for kind in ("chosen", "rejected"):
        for what in ("reward",) if options.is_scored else ("reward", "logprob"):
            if of[kind]:
                found[f"preference/{kind}_{what}"] = of[f"{kind}_{what}"] / of[kind]
    if of["chosen"] and of["rejected"]:
        found["preference/margin"] = found["preference/chosen_reward"] - found["preference/rejected_reward"]
    if options.is_scored:
        found["preference/mean_reward"] = (of["chosen_reward"] + of["rejected_reward"]) / (2 * of["groups"])
    return found
