"""Online preference learning: pairs of a run's own completions (OAIF, arXiv 2402.04792)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vlrl.algorithm.credit import MaskFn, nothing, token_advantages
from vlrl.rounding import all_equal
from vlrl.types import Credit, Group, Trajectory


def assign_pairs(groups: Sequence[Group], masks: Sequence[MaskFn] = ()) -> None:
    """Fill each group's credits in place: its best completion is chosen (1), its worst rejected (-1).

    Rewards stand in for OAIF's annotator (Algorithm 1), and the group for its two samples. All others do not
    count, nor does a group whose rewards are equal, that has fewer than two scores, or one of whose two has
    no trained token. Of equal ones the first is taken.

    Args:
        groups: scored.
        masks: a token is trained if all of them say so.
    """
    for group in groups:
        signs = _signs([] if group.failed else group.scored)
        credits = [
            _credit(trajectory, signs.get(trajectory.group_index, 0.0), masks)
            for trajectory in group.trajectories
        ]
        whole = all(credit.num_trained for credit in credits if credit.counts)
        group.credits = [replace(credit, counts=credit.counts and whole) for credit in credits]


def _signs(scored: Sequence[Trajectory]) -> dict[int, float]:
    """1 for the best and -1 for the worst, by group index; empty where there is no difference."""
    rewards = [t.score.total for t in scored if t.score is not None]
    if len(rewards) < 2 or all_equal(rewards):
        return {}
    best, worst = int(np.argmax(rewards)), int(np.argmin(rewards))
    return {scored[best].group_index: 1.0, scored[worst].group_index: -1.0}


def _credit(trajectory: Trajectory, sign: float, masks: Sequence[MaskFn]) -> Credit:
    """Every turn's tokens with the sign; a branch's shared turns too, for they are part of its likelihood."""
    advantages = np.full(len(trajectory.turns), sign, np.float32)
    return replace(token_advantages(trajectory, advantages, masks if sign else (nothing,)), counts=sign != 0)
