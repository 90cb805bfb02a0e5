"""RAFT: the best of a group is imitated, and nothing else is learnt from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.algorithm.advantages.episode import totals_of, whole_episodes
from vlrl.ledger import FloatArray
from vlrl.rounding import all_equal
from vlrl.types import Trajectory


def best_of(
    trajectories: Sequence[Trajectory], *, num_best: int = 1, min_reward: float | None = None
) -> list[FloatArray]:
    """RAFT (arXiv 2304.06767, Algorithm 1): 1 for the best by reward, 0 for the others.

    With loss=policy_gradient that is the negative log-likelihood of the best alone. All have 0 where the
    rewards are equal and no min_reward says that they are good.

    Args:
        trajectories: of a group.
        num_best: episodes that are imitated; of equal ones the first.
        min_reward: least reward of one that is imitated; None takes any.
    """
    rewards = np.asarray(totals_of(trajectories), np.float64)
    ranked = np.argsort(-rewards, kind="stable")[:num_best]
    advantages = np.zeros(len(rewards), np.float32)
    if min_reward is not None:
        ranked = ranked[rewards[ranked] >= min_reward]
    elif all_equal(rewards):
        ranked = ranked[:0]
    advantages[ranked] = 1.0
    return whole_episodes(trajectories, advantages)
