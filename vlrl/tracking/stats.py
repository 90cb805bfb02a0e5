"""The numbers that describe a step's rollouts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from vlrl.algorithm.credit import shared_turn_mask
from vlrl.rounding import all_equal
from vlrl.tracking.metrics import EPISODE_COUNTS, SOURCE_REWARD
from vlrl.types import Group, Score, Trajectory


def rollout_stats(groups: Sequence[Group], failures: Sequence[object]) -> dict[str, float]:
    """Rewards, lengths and outcomes of a batch; names as in `vlrl.tracking.metrics.METRICS`.

    Args:
        groups: scored.
        failures: of the trajectories that could not be scored.
    """
    trajectories = [t for g in groups for t in g.trajectories if not t.failed]
    scores = [t.score for t in trajectories if t.score is not None]
    totals = np.asarray([s.total for s in scores] or [np.nan], dtype=np.float64)
    scored = [g for g in groups if not g.failed]
    flat = [all_equal([t.score.total for t in g.scored if t.score]) for g in scored]
    return {
        "reward/mean": float(totals.mean()),
        "reward/std": float(totals.std()),
        **_part_means(trajectories),
        **_source_means(trajectories),
        "reward/zero_variance_groups": float(np.mean(flat)) if flat else 0.0,
        "completion/num_tokens_mean": _mean([t.num_action_tokens for t in trajectories]),
        "completion/truncated_fraction": _mean([t.outcome == "truncated" for t in trajectories]),
        "groups/num_without_baseline": float(len(groups) - len(scored)),
        "failures/reward": float(len(failures)),
    }


def episode_stats(groups: Sequence[Group], counts: Mapping[str, int]) -> dict[str, float]:
    """What a batch's episodes were like; empty if none was played in an environment.

    Args:
        groups: of `rollout_groups`.
        counts: what failed or was left out.
    """
    played = [t for g in groups for t in g.trajectories if t.sample.env]
    if not played and not counts:
        return {}
    episodes = [t for t in played if not t.failed]
    turns = [turn for t in episodes for turn in t.turns]
    branched = [t for t in episodes if t.trunk is not None]
    names = sorted({name for t in episodes for name in t.info} - {"invalid"})
    return {
        "episode/num_turns_mean": _mean([len(t.turns) for t in episodes]),
        "episode/return_mean": _mean([t.episode_return for t in episodes]),
        "episode/invalid_fraction": _mean([turn.invalid for turn in turns]),
        "episode/num_ledgers_mean": _mean([len(t.ledgers) for t in episodes]),
        **({"episode/branched_fraction": len(branched) / len(episodes)} if branched else {}),
        **{f"episode/{name}": _mean([t.info[name] for t in episodes if name in t.info]) for name in names},
        **{f"failures/{name}": float(counts.get(name, 0)) for name in EPISODE_COUNTS},
    }


def num_generated_tokens(groups: Sequence[Group]) -> int:
    """Tokens that the policy generated; those that episodes share once."""
    return sum(
        int((ledger.loss_mask & once).sum())
        for group in groups
        for trajectory in group.trajectories
        for ledger, once in zip(trajectory.ledgers, shared_turn_mask(trajectory), strict=True)
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _part_means(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Mean of each named part over the sources that have it; there, a completion without it counts as 0."""
    values: dict[str, list[float]] = defaultdict(list)
    for scores in _by_source(trajectories).values():
        for name in {name for score in scores for name in score.parts}:
            values[name] += [score.parts.get(name, 0.0) for score in scores]
    return {f"reward/{name}": float(np.mean(values[name])) for name in sorted(values)}


def _source_means(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Mean reward of each named source; none has a name in a run of one source."""
    scores = _by_source(trajectories)
    return {
        SOURCE_REWARD + source: float(np.mean([score.total for score in scores[source]]))
        for source in sorted(scores)
        if source
    }


def _by_source(trajectories: Sequence[Trajectory]) -> dict[str, list[Score]]:
    scores: dict[str, list[Score]] = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.score is not None:
            scores[trajectory.sample.source].append(trajectory.score)
    return scores
