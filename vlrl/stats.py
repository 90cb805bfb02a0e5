"""The numbers that describe a step's rollouts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.types import Group


def rollout_stats(groups: Sequence[Group], failures: Sequence[str]) -> dict[str, float]:
    """Rewards, lengths and outcomes of a batch; names as in `vlrl.metrics.METRICS`.

    Args:
        groups: scored.
        failures: reasons of the trajectories that could not be scored.
    """
    trajectories = [t for g in groups for t in g.trajectories]
    scores = [t.score for t in trajectories if t.score is not None]
    totals = np.asarray([s.total for s in scores] or [np.nan], dtype=np.float64)
    parts = sorted({name for s in scores for name in s.parts})
    scored = [g for g in groups if not g.failed]
    flat = [len({t.score.total for t in g.trajectories if t.score}) == 1 for g in scored]
    return {
        "reward/mean": float(totals.mean()),
        "reward/std": float(totals.std()),
        **{f"reward/{name}": float(np.mean([s.parts.get(name, 0.0) for s in scores])) for name in parts},
        "reward/zero_variance_groups": float(np.mean(flat)) if flat else 0.0,
        "completion/num_tokens_mean": float(np.mean([t.num_action_tokens for t in trajectories])),
        "completion/truncated_fraction": float(np.mean([t.outcome == "truncated" for t in trajectories])),
        "failures/reward": float(len(failures)),
    }
