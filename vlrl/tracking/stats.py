"""The numbers that describe a step's rollouts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from vlrl.config import Config
from vlrl.config.learning.policies import policy_of_agent
from vlrl.tracking.group_numbers import GroupNumbers, TrajectoryNumbers
from vlrl.tracking.metrics import EPISODE_COUNTS, GREEDY_REWARD, POLICIES, SOURCE_REWARD


def rollout_stats(groups: Sequence[GroupNumbers], failures: Sequence[object]) -> dict[str, float]:
    """Rewards, lengths and outcomes of a batch; names as in `vlrl.tracking.metrics.METRICS`.

    Args:
        groups: scored.
        failures: of the trajectories that could not be scored.
    """
    trajectories = [t for g in groups for t in g.members if not t.failed]
    totals = np.asarray([t.total for t in trajectories if t.total is not None] or [np.nan], np.float64)
    scored = [g for g in groups if not g.failed]
    return {
        "reward/mean": float(totals.mean()),
        "reward/std": float(totals.std()),
        **_part_means(trajectories),
        **_source_means(trajectories),
        **_baseline(groups),
        "reward/zero_variance_groups": float(np.mean([g.is_even for g in scored])) if scored else 0.0,
        "completion/num_tokens_mean": _mean([t.num_action_tokens for t in trajectories]),
        "completion/truncated_fraction": _mean([t.truncated for t in trajectories]),
        "groups/num_without_baseline": float(len(groups) - len(scored)),
        "failures/reward": float(len(failures)),
    }


def episode_stats(groups: Sequence[GroupNumbers], counts: Mapping[str, int]) -> dict[str, float]:
    """What a batch's episodes were like; empty if none was played in an environment.

    Args:
        groups: of what was generated.
        counts: what failed or was left out, see `vlrl.rollout.groups.RolloutResult`.
    """
    if not any(t.in_env for g in groups for t in g.members) and not counts:
        return {}
    episodes = [t.episode for g in groups for t in g.members if t.episode is not None]
    num_turns = sum(e.num_turns for e in episodes)
    num_branched = sum(e.branched for e in episodes)
    num_invalid = sum(e.num_invalid for e in episodes)
    names = sorted({name for e in episodes for name in e.info} - {"invalid"})
    return {
        "episode/num_turns_mean": _mean([e.num_turns for e in episodes]),
        "episode/return_mean": _mean([e.episode_return for e in episodes]),
        "episode/invalid_fraction": num_invalid / num_turns if num_turns else float("nan"),
        "episode/num_ledgers_mean": _mean([e.num_ledgers for e in episodes]),
        **({"episode/branched_fraction": num_branched / len(episodes)} if num_branched else {}),
        **{f"episode/{name}": _mean([e.info[name] for e in episodes if name in e.info]) for name in names},
        **{f"failures/{name}": float(counts.get(name, 0)) for name in EPISODE_COUNTS},
    }


def stats_by_policy(groups: Sequence[GroupNumbers], config: Config) -> dict[str, float]:
    """Mean reward of each policy's completions, frozen ones included; none where there is one policy."""
    owner, rewards = policy_of_agent(config), dict[str, list[float]]()
    for group in groups:
        if group.agent in owner:
            rewards.setdefault(owner[group.agent], [])
            rewards[owner[group.agent]] += [t.total for t in group.members if t.total is not None]
    return {f"{POLICIES}{name}/reward_mean": _mean(values) for name, values in sorted(rewards.items())}


def _baseline(groups: Sequence[GroupNumbers]) -> dict[str, float]:
    """What completions are compared with, if that is a greedy one of the same sample."""
    greedy = [t for group in groups for t in group.greedy]
    return {GREEDY_REWARD: _mean([t.total for t in greedy if t.total is not None])} if greedy else {}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _part_means(trajectories: Sequence[TrajectoryNumbers]) -> dict[str, float]:
    """Mean of each named part over the sources that have it; there, a completion without it counts as 0."""
    values: dict[str, list[float]] = defaultdict(list)
    for scored in _by_source(trajectories).values():
        for name in {name for t in scored for name in t.parts}:
            values[name] += [t.parts.get(name, 0.0) for t in scored]
    return {f"reward/{name}": float(np.mean(values[name])) for name in sorted(values)}


def _source_means(trajectories: Sequence[TrajectoryNumbers]) -> dict[str, float]:
    """Mean reward of each named source; none has a name in a run of one source."""
    by_source = _by_source(trajectories)
    return {
        SOURCE_REWARD + source: float(np.mean([t.total for t in by_source[source]]))
        for source in sorted(by_source)
        if source
    }


def _by_source(trajectories: Sequence[TrajectoryNumbers]) -> dict[str, list[TrajectoryNumbers]]:
    scored: dict[str, list[TrajectoryNumbers]] = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.total is not None:
            scored[trajectory.source].append(trajectory)
    return scored
