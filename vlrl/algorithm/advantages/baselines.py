"""Advantages of an episode by other baselines than its group's mean: exactly 0 where rewards are equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.algorithm.advantages.episode import totals_of, whole_episodes
from vlrl.ledger import FloatArray
from vlrl.rounding import all_equal
from vlrl.types import Trajectory


def rloo(trajectories: Sequence[Trajectory]) -> list[FloatArray]:
    """REINFORCE leave-one-out (arXiv 2402.14740): A_i = r_i - mean of the others' r_j.

    It is n / (n - 1) times the distance from the group's mean, and unbiased: the baseline does not depend on
    the episode's own reward.
    """
    rewards = np.asarray(totals_of(trajectories), np.float64)
    if all_equal(rewards):
        return whole_episodes(trajectories, np.zeros(len(rewards), np.float32))
    others = (rewards.sum() - rewards) / (len(rewards) - 1)
    return whole_episodes(trajectories, (rewards - others).astype(np.float32))


def opo(trajectories: Sequence[Trajectory]) -> list[FloatArray]:
    """On-policy RL with the optimal baseline (arXiv 2505.23585): A_i = r_i - Σ l_j r_j / Σ l_j.

    l_j are the tokens that episode j generated. The baseline has the least variance if the squared gradient
    of a sequence is proportional to its length.
    """
    rewards = np.asarray(totals_of(trajectories), np.float64)
    lengths = np.asarray([t.num_action_tokens for t in trajectories], np.float64)
    if all_equal(rewards) or not lengths.any():
        return whole_episodes(trajectories, np.zeros(len(rewards), np.float32))
    baseline = (lengths * rewards).sum() / lengths.sum()
    return whole_episodes(trajectories, (rewards - baseline).astype(np.float32))


def remax(trajectories: Sequence[Trajectory], *, greedy: Trajectory) -> list[FloatArray]:
    """ReMax (arXiv 2310.10505, §4): A_i = r_i - r(greedy episode of the same sample).

    The greedy episode does not depend on what was sampled, so the gradient is unbiased for any n, 1 too.
    """
    baseline = totals_of([greedy])[0]
    advantages = [0.0 if all_equal([r, baseline]) else r - baseline for r in totals_of(trajectories)]
    return whole_episodes(trajectories, advantages)


def reward(trajectories: Sequence[Trajectory]) -> list[FloatArray]:
    """REINFORCE's (Williams 1992) A_i = r_i, without a baseline of the group.

    REINFORCE++ (arXiv 2501.03262) has the whole batch's mean and deviation in its place: algorithm.normalize.
    """
    return whole_episodes(trajectories, totals_of(trajectories))
