"""GDPO: each reward is normalised by itself, so that one with a large deviation does not hide the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vlrl.algorithm.advantage import group_advantages
from vlrl.algorithm.advantages.episode import whole_episodes
from vlrl.errors import ConfigError
from vlrl.ledger import FloatArray
from vlrl.types import Trajectory


def gdpo(trajectories: Sequence[Trajectory], *, rewards: Mapping[str, float]) -> list[FloatArray]:
    """Group reward-decoupled normalisation (arXiv 2601.05242, §3): A = Σ_k w_k (r_k - mean(r_k)) / std(r_k).

    GRPO adds rewards first, so that (1, 0) and (0, 1) are the same episode to it. The paper's last step, mean
    0 and deviation 1 over the batch, is algorithm.normalize=batch.

    Args:
        trajectories: the scored ones of a group.
        rewards: name of a part of the score → w_k.

    Raises:
        ConfigError: for a part that the group's scores do not have.
    """
    total = np.zeros(len(trajectories), np.float64)
    for name, weight in rewards.items():
        total += weight * group_advantages(parts_of(trajectories, name), scale_by_std=True).astype(np.float64)
    return whole_episodes(trajectories, total.astype(np.float32))


def parts_of(trajectories: Sequence[Trajectory], name: str) -> list[float]:
    """A part of each episode's score, or its total; one that a member lacks is 0, if others have it.

    Raises:
        ConfigError: if no member has it.
    """
    scores = [t.score for t in trajectories if t.score is not None]
    if name == "total":
        return [score.total for score in scores]
    if not any(name in score.parts for score in scores):
        known = sorted({part for score in scores for part in score.parts})
        raise ConfigError(
            f"algorithm.credit: reward {name!r} is no part of the score of sample "
            f"{trajectories[0].sample.id!r}, which has {', '.join(known) or 'none'}"
        )
    return [score.parts.get(name, 0.0) for score in scores]
