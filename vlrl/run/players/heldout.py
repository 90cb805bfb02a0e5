"""Samples that are answered and not trained, in whichever process: held-out ones, and those of parity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vlrl.protocols import Policy
from vlrl.rollout.context import RolloutContext
from vlrl.rollout.groups import rollout_groups, score_groups
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Group, Sample


@dataclass(frozen=True, slots=True)
class Asking:
    """How samples are answered.

    Attributes:
        purpose: in the seeds, so that nothing else of the run generates the same.
        group_size: episodes of each sample; None is as many as in training.
        greedy: take the likeliest token.
        step: whose reward weights the totals have; None scores nothing.
    """

    purpose: str
    group_size: int | None = None
    greedy: bool = False
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """Episodes of samples.

    Attributes:
        of_samples: of each sample its group, or one for each of its agents.
        failures: of scoring.
    """

    of_samples: list[list[Group]]
    failures: list[RewardFailure]


async def answer(
    samples: Sequence[Sample],
    context: RolloutContext,
    reward: ComposedReward,
    asking: Asking,
    *,
    positions: Sequence[int],
    policies: Sequence[Policy],
) -> Answers:
    """Play every sample and score it.

    Args:
        samples: what is asked.
        context: what episodes are played with.
        reward: scores them.
        asking: how.
        positions: of each sample its number among all that are asked; it is in the seeds.
        policies: of each sample who generates.
    """
    seed = context.config.run.seed
    result = await rollout_groups(
        samples,
        context,
        seed_paths=[(seed, asking.purpose, position) for position in positions],
        group_size=asking.group_size,
        greedy=asking.greedy,
        policies=policies,
    )
    if asking.step is None:
        return Answers(result.of_samples, [])
    return Answers(result.of_samples, await score_groups(result.groups, reward.score_all, asking.step))
