"""Checks that the advantage has a baseline: a group, trees of it, a greedy episode or a critic."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlrl.config.load import Config


def require_baseline(config: Config) -> None:
    """Raise ValueError for groups in which the config's advantage has nothing, or too little, to compare."""
    credit, size = config.algorithm.credit, config.rollout.group_size
    branches = config.episodes.branching.num_branches
    if branches > 1 and credit.name != "episode":
        raise ValueError(
            f"algorithm.credit={credit.name} does not support trees; with "
            f"episodes.branching.num_branches={branches} set algorithm.credit=episode"
        )
    k = credit.options.get("k", 0) if credit.name == "pass_at_k" else 0
    if isinstance(k, int) and k > size:
        raise ValueError(
            f"algorithm.credit.options.k={k} is above rollout.group_size={size}: the best of k is taken "
            "among the completions of a group; lower k, or raise group_size"
        )
    if size == 1 and config.preferences is not None:
        raise ValueError(
            "rollout.group_size=1 with preferences: a pair is the best and the worst of a group; set "
            "rollout.group_size=2 or more"
        )
    algorithm = config.algorithm
    if size == 1 and algorithm.critic is None and not algorithm.has_greedy_baseline:
        raise ValueError(
            f"rollout.group_size=1 with algorithm.credit={credit.name}, whose baseline is the group; set "
            "rollout.group_size=2 or more, or algorithm.credit=remax, whose baseline is a greedy completion, "
            "or algorithm=ppo, whose baseline is a critic"
        )
