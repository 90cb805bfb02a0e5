"""What a step must know of all its tokens before it trains the first: advantages with KL, chosen tokens.

It costs a forward pass without gradient of the policy where tokens are chosen by what it says of them; the
reference's pass is only moved ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vlrl.algorithm.normalize import mean_and_deviation
from vlrl.algorithm.penalties.kl_reward import kl_to_go
from vlrl.algorithm.selections.chosen import selected
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.model.logprobs import DeviceBatch
from vlrl.trainer.critic.advantages import give_advantages, token_rows
from vlrl.trainer.objective import Terms
from vlrl.trainer.regularizers.gather import of_all_ranks

LaterFn = Callable[[Tensor, Tensor], Tensor]
"""(values [M], sequence ids [M]) → of each token its ledger's sum over the slices of later ranks, [M]."""


@dataclass(frozen=True, slots=True)
class Passes:
    """The forward passes that a survey may take of a micro-batch, without gradient.

    Attributes:
        reference: logprobs [M] of the reference; None without a KL term.
        policy: logprobs [M] and entropies [M].
        later: sums over the slices of later ranks; None if no rank shares a ledger.
        values: [M] of the critic; None without one.
    """

    reference: Callable[[DeviceBatch], Tensor | None]
    policy: Callable[[DeviceBatch], tuple[Tensor, Tensor]]
    later: LaterFn | None
    values: Callable[[DeviceBatch], Tensor] | None = None


def survey(
    batches: Iterable[DeviceBatch], algorithm: AlgorithmConfig, passes: Passes, kl_coef: float, seed: int
) -> list[Terms]:
    """What is known of each micro-batch before the update; every rank must call it.

    Args:
        batches: of this rank, in their order; at least one, if an empty one.
        algorithm: the config's.
        passes: of this rank's models.
        kl_coef: β of this update.
        seed: of this update's random choices.
    """
    terms: list[Terms] = []
    seen: list[tuple[Tensor, Tensor]] = []
    valued: list[Tensor] = []
    with torch.no_grad():
        for batch in batches:
            reference_logprobs, advantages = passes.reference(batch), batch.advantages
            if algorithm.selections:
                seen.append(passes.policy(batch))
            if passes.values is not None:
                penalties = kl_penalties(batch, reference_logprobs if algorithm.kl_in == "reward" else None)
                valued.append(token_rows(batch, passes.values(batch), kl_coef * penalties))
            elif algorithm.kl_in == "reward" and reference_logprobs is not None:
                advantages = with_kl(batch, reference_logprobs, kl_coef, passes.later)
            terms.append(Terms(advantages=advantages, reference_logprobs=reference_logprobs))
    if passes.values is not None:
        give_advantages(terms, valued, algorithm)
    if algorithm.changes_advantages and algorithm.normalize == "batch":
        normalize(terms)
    if algorithm.selections:
        select(terms, seen, algorithm, seed)
    return terms


def with_kl(batch: DeviceBatch, reference_logprobs: Tensor, kl_coef: float, later: LaterFn | None) -> Tensor:
    """A_t - β Σ_{i ≥ t} KL_i, [M], with the tokens of a ledger that other ranks have."""
    to_go = kl_to_go(batch.sampler_logprobs, reference_logprobs, batch.sequence_ids)
    if later is not None:
        own = batch.sampler_logprobs.double() - reference_logprobs.double()
        to_go = to_go + later(own, batch.sequence_ids).cpu()
    return (batch.advantages.cpu().double() - kl_coef * to_go).to(batch.advantages)


def kl_penalties(batch: DeviceBatch, reference_logprobs: Tensor | None) -> Tensor:
    """-KL_t = log π_ref - log π_b, [M] float64: the KL's part of each token's own reward; 0 without one."""
    if reference_logprobs is None:
        return torch.zeros_like(batch.sampler_logprobs, dtype=torch.float64)
    return reference_logprobs.double() - batch.sampler_logprobs.double()


def normalize(terms: Sequence[Terms]) -> None:
    """Advantages that ranks made get mean 0 and deviation 1 over all ranks' tokens (arXiv 2501.03262, §3).

    The order is the paper's: the KL is in the reward before the batch's mean and deviation are taken. Of a
    critic's advantages it is what PPO's code calls whitening.
    """
    mine = torch.cat([of_batch.advantages for of_batch in terms])[:, None]
    whole, _ = of_all_ranks(mine.double())
    # In the order of their size, so that the sums do not depend on where tokens are packed.
    mean, deviation = mean_and_deviation(np.sort(whole[:, 0].numpy()))
    for of_batch in terms:
        centred = of_batch.advantages.double() - mean
        scaled = centred / deviation if deviation else torch.zeros_like(centred)
        of_batch.advantages = scaled.to(of_batch.advantages)


def select(
    terms: Sequence[Terms], seen: Sequence[tuple[Tensor, Tensor]], algorithm: AlgorithmConfig, seed: int
) -> None:
    """Give each micro-batch the factors and penalties that the config's selections choose over all ranks.

    Args:
        terms: of this rank's micro-batches, with advantages.
        seen: their tokens' logprobs and entropies by the policy.
        algorithm: the config's.
        seed: of this update.
    """
    columns = [
        torch.stack([of_tokens[0], of_batch.advantages, of_tokens[1]], dim=1)
        for of_batch, of_tokens in zip(terms, seen, strict=True)
    ]
    whole, begin = of_all_ranks(torch.cat(columns).double())
    logprobs, advantages, entropies = whole.unbind(1)
    chosen = selected(logprobs, advantages, entropies, algorithm, seed)
    lengths = [len(of_batch.advantages) for of_batch in terms]
    factors, penalties = (torch.split(values[begin : begin + sum(lengths)], lengths) for values in chosen)
    for of_batch, kept, held in zip(terms, factors, penalties, strict=True):
        of_batch.factors, of_batch.penalties = kept.to(of_batch.advantages), held.to(of_batch.advantages)
