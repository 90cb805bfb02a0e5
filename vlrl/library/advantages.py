"""Advantages that a program gives, as the credit of each token; a trainer's logprobs, episode by episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.algorithm.credit import MaskFn, token_advantages
from vlrl.batch import Batch
from vlrl.errors import ConfigError
from vlrl.types import Credit, FloatArray, Group, Trajectory

Advantage: TypeAlias = float | Sequence[float] | npt.ArrayLike
"""Of an episode: one number, or an array of one number a turn, or of one a generated token."""


def with_advantages(
    groups: Sequence[Group], advantages: Sequence[Sequence[Advantage]], masks: Sequence[MaskFn] = ()
) -> list[Group]:
    """The groups with the credit that a program gives their episodes; those that failed are not trained.

    Args:
        groups: what was sampled.
        advantages: [num_groups][n], see `Advantage`.
        masks: a token is trained if all of them say so.

    Raises:
        ConfigError: naming the group whose advantages do not fit.
    """
    if len(advantages) != len(groups):
        raise ConfigError(f"there are {len(groups)} groups, and advantages of {len(advantages)}")
    found = []
    for number, (group, of_group) in enumerate(zip(groups, advantages, strict=True)):
        if len(of_group) != len(group.trajectories):
            raise ConfigError(
                f"group {number} has {len(group.trajectories)} episodes, and {len(of_group)} advantages"
            )
        where = f"group {number}, episode "
        credits = [
            replace(_credit(t, given, f"{where}{t.group_index}", masks), counts=not t.failed)
            for t, given in zip(group.trajectories, of_group, strict=True)
        ]
        found.append(replace(group, credits=credits))
    return found


def _credit(trajectory: Trajectory, given: Advantage, where: str, masks: Sequence[MaskFn]) -> Credit:
    array = np.asarray(given, np.float32)
    num_turns, num_tokens = len(trajectory.turns), trajectory.num_action_tokens
    if not np.isfinite(array).all():
        raise ConfigError(f"{where}: its advantage is not finite: {given!r}")
    of_turns = np.full(num_turns, array, np.float32) if array.ndim == 0 else array
    if of_turns.shape == (num_turns,):
        return token_advantages(trajectory, of_turns, masks)
    if array.shape != (num_tokens,):
        raise ConfigError(
            f"{where}: its advantage has the shape {array.shape}; give one number, one for each of its "
            f"{num_turns} turns, or one for each of its {num_tokens} generated tokens"
        )
    credit = token_advantages(trajectory, np.zeros(num_turns, np.float32), masks)
    ends = np.cumsum([ledger.loss_mask.sum() for ledger in trajectory.ledgers])[:-1]
    for ledger, values, part in zip(
        trajectory.ledgers, credit.advantages, np.split(array, ends), strict=True
    ):
        values[ledger.loss_mask] = part
    return credit


def by_episode(
    groups: Sequence[Group], batch: Batch, logprobs: Sequence[Sequence[FloatArray]]
) -> list[list[FloatArray]]:
    """Logprobs of micro-batches' tokens where the program looks for them.

    Args:
        groups: of which the batch is.
        batch: packed with origins.
        logprobs: [num_ranks][num_micro_batches] of [M].

    Returns:
        [num_groups][n] of [num_action_tokens] float32; NaN where an episode failed.
    """
    of_ledgers = [
        [[np.full(len(ledger.token_ids), np.nan, np.float32) for ledger in t.ledgers] for t in g.trajectories]
        for g in groups
    ]
    places = [{t.group_index: number for number, t in enumerate(g.trajectories)} for g in groups]
    for micro_batch, values in zip(chain(*batch), chain(*logprobs), strict=True):
        assert micro_batch.origins is not None, "the batch was packed without origins"
        for (group, index, ledger, token), value in zip(micro_batch.origins.tolist(), values, strict=True):
            of_ledgers[group][places[group][index]][ledger][token] = value
    return [
        [_generated(t, found) for t, found in zip(group.trajectories, of_group, strict=True)]
        for group, of_group in zip(groups, of_ledgers, strict=True)
    ]


def _generated(trajectory: Trajectory, of_ledgers: Sequence[FloatArray]) -> FloatArray:
    pairs = zip(trajectory.ledgers, of_ledgers, strict=True)
    return np.concatenate([np.zeros(0, np.float32), *(values[ledger.loss_mask] for ledger, values in pairs)])
