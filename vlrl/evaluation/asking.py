"""Held-out rows are answered: all at once, and those that are kept as soon as each is done."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from vlrl.config import Config
from vlrl.evaluation.answers import HOWS, HeldoutAnswer, HeldoutRow, How, answers_of
from vlrl.evaluation.kept import KeptAnswers
from vlrl.rollout.groups import require_played, require_scored
from vlrl.run.players.heldout import Asking
from vlrl.run.players.rollouts import Rollouts
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Group

Answered = tuple[list[HeldoutAnswer], dict[How, list[Group]]]
"""What the rows' answers earned, and their rollouts."""


async def ask_together(
    rows: Sequence[HeldoutRow], rollouts: Rollouts, reward: ComposedReward, config: Config, step: int
) -> Answered:
    """Answer all rows greedily, then all of them at the training temperature.

    Raises:
        EnvError: if more episodes failed than the config allows.
        ScoringError: if more answers could not be scored than that.
    """
    samples, positions = [row.sample for row in rows], [row.position for row in rows]
    found, groups = list[HeldoutAnswer](), dict[How, list[Group]]()
    for how in HOWS:
        answers = await rollouts.answer(samples, asking_of(how, config, step), positions)
        groups[how] = [group for of_sample in answers.of_samples for group in of_sample]
        _require_answered(groups[how], answers.failures, config)
        for row, of_sample in zip(rows, answers.of_samples, strict=True):
            found += answers_of(of_sample, how, row, reward)
    return found, groups


async def ask_each(
    rows: Sequence[HeldoutRow],
    rollouts: Rollouts,
    reward: ComposedReward,
    config: Config,
    step: int,
    kept: KeptAnswers,
) -> list[HeldoutAnswer]:
    """Answer what is not kept yet, all rows at once and each by itself, so that it is kept when it is done.

    Raises:
        EnvError: as `ask_together`.
        ScoringError: likewise.
    """
    groups, failures = list[Group](), list[RewardFailure]()

    async def ask(how: How, row: HeldoutRow) -> None:
        answers = await rollouts.answer([row.sample], asking_of(how, config, step), [row.position])
        of_row = answers.of_samples[0]
        groups.extend(of_row)
        failures.extend(answers.failures)
        await asyncio.to_thread(kept.add, how, row, answers_of(of_row, how, row, reward), of_row)

    try:
        async with asyncio.TaskGroup() as running:
            for how in HOWS:
                for row in rows:
                    if not kept.has(how, row):
                        running.create_task(ask(how, row))
    except BaseExceptionGroup as errors:  # the first says what to fix
        raise errors.exceptions[0] from None
    _require_answered(groups, failures, config)
    kept.finish()
    return [answer for how in HOWS for row in rows for answer in kept.answers(how, row)]


def asking_of(how: How, config: Config, step: int) -> Asking:
    """How the rows of an evaluation are answered."""
    size = 1 if how == "greedy" else config.eval.num_answers
    return Asking("evaluate", group_size=size, greedy=how == "greedy", step=step)


def _require_answered(groups: Sequence[Group], failures: Sequence[RewardFailure], config: Config) -> None:
    played = [t for group in groups for t in group.trajectories]
    failed = [t.failure for t in played if t.failed]
    require_played(failed, len(played), config.episodes.max_failed_share)
    require_scored(failures, len(played), config.scoring.max_failed_share)
