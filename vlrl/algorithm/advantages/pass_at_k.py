"""Pass@k: an episode is worth what it adds to the best of k."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt

import numpy as np

from vlrl.algorithm.advantages.episode import whole_episodes
from vlrl.algorithm.advantages.gdpo import parts_of
from vlrl.ledger import FloatArray
from vlrl.types import Trajectory


def pass_at_k(
    trajectories: Sequence[Trajectory], *, k: int = 2, reward: str = "total", threshold: float = 1.0
) -> list[FloatArray]:
    """Pass@k training (arXiv 2508.10751, Eq. 14 and 15, the analytical advantage).

    All subsets of k of the n episodes are groups whose reward is 1 if one of them passes. With n₋ episodes
    that do not pass:

        R = 1 - C(n₋, k) / C(n, k)    mean over the subsets        σ = √(R (1 - R))
        passed       A = (1 - R) / σ
        not passed   A = (1 - R - C(n₋ - 1, k - 1) / C(n - 1, k - 1)) / σ

    which is the mean of (reward - R) / σ over the subsets that an episode is in. 0 where σ is.

    Args:
        trajectories: the scored ones of a group; where fewer than k are left, k is their number.
        k: episodes of a subset.
        reward: a part of the score, or total.
        threshold: an episode passes if its reward is at least that.
    """
    passed = np.asarray(parts_of(trajectories, reward)) >= threshold
    num, num_wrong = len(passed), int((~passed).sum())
    k = min(k, num)
    mean = 1.0 - comb(num_wrong, k) / comb(num, k)
    deviation = sqrt(mean * (1.0 - mean))
    if deviation == 0.0:
        return whole_episodes(trajectories, np.zeros(num, np.float32))
    right = (1.0 - mean) / deviation
    wrong = right - comb(max(num_wrong - 1, 0), k - 1) / comb(num - 1, k - 1) / deviation
    return whole_episodes(trajectories, np.where(passed, right, wrong).astype(np.float32))
