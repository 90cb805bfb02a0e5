"""GRPO's and Dr. GRPO's advantage: an episode's reward against its group's, or its tree's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.algorithm.advantage import group_advantages, tree_advantages
from vlrl.ledger import FloatArray
from vlrl.types import Trajectory


def episode(trajectories: Sequence[Trajectory], *, scale_by_std: bool = True) -> list[FloatArray]:
    """GRPO (arXiv 2402.03300), §4.1.2: A_i = (r_i - mean(r)) / std(r), the same for all turns of an episode.

    Without scale_by_std it is Dr. GRPO's (arXiv 2503.20783, Eq. 3). Episodes that branch have an advantage
    before their branch point and one after it, see `vlrl.algorithm.advantage.tree_advantages`.
    """
    totals = totals_of(trajectories)
    if any(t.trunk is not None for t in trajectories):
        return _of_trees(trajectories, totals, scale_by_std)
    return whole_episodes(trajectories, group_advantages(totals, scale_by_std=scale_by_std))


def totals_of(trajectories: Sequence[Trajectory]) -> list[float]:
    """The reward of each scored episode."""
    return [t.score.total for t in trajectories if t.score is not None]


def whole_episodes(
    trajectories: Sequence[Trajectory], values: Sequence[float] | FloatArray
) -> list[FloatArray]:
    """An episode's value for each of its turns: [n] of [num_turns] float32."""
    return [np.full(len(t.turns), a, np.float32) for t, a in zip(trajectories, values, strict=True)]


def _of_trees(
    trajectories: Sequence[Trajectory], totals: Sequence[float], scale_by_std: bool
) -> list[FloatArray]:
    """The turns before a branch point by their tree, those after it within their tree: [n] of [num_turns].

    Where failures left a single tree, nothing is known of the turns before its branch point.
    """
    trees = [t.group_index if t.trunk is None else t.trunk for t in trajectories]
    if len(set(trees)) > 1:
        among, within = tree_advantages(totals, trees, scale_by_std=scale_by_std)
    else:
        within = group_advantages(totals, scale_by_std=scale_by_std)
        among = np.zeros_like(within)
    advantages = []
    for number, trajectory in enumerate(trajectories):
        num_shared = trajectory.num_shared if trajectory.trunk is not None else len(trajectory.turns)
        of_turns = np.full(len(trajectory.turns), within[number], np.float32)
        of_turns[:num_shared] = among[number]
        advantages.append(of_turns)
    return advantages
