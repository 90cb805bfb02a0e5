"""Held-out samples, answered once each and scored, in whichever process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vlrl.protocols import Policy
from vlrl.rollout.context import RolloutContext
from vlrl.rollout.groups import rollout_groups, score_groups
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Group, Sample


@dataclass(frozen=True, slots=True)
class Answers:
    """Episodes of held-out samples, one each.

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
    *,
    positions: Sequence[int],
    policies: Sequence[Policy],
    greedy: bool,
    step: int,
) -> Answers:
    """Play every sample once and score it.

    Args:
        samples: what is asked.
        context: what episodes are played with.
        reward: scores them.
        positions: of each sample its number among all that are held out; it is in the seeds.
        policies: of each sample who generates.
        greedy: take the likeliest token.
        step: whose reward weights the totals have.
    """
    seed = context.config.run.seed
    result = await rollout_groups(
        samples,
        context,
        seed_paths=[(seed, "evaluate", position) for position in positions],
        group_size=1,
        greedy=greedy,
        policies=policies,
    )
    return Answers(result.of_samples, await score_groups(result.groups, reward.score_all, step))
