"""What a step's rollouts are summed up as."""

from __future__ import annotations

import math

import pytest
from builders import make_group, make_sample, make_trajectory

from vlrl.tracking.group_numbers import numbers_of
from vlrl.tracking.stats import rollout_stats
from vlrl.types import Group, Score


def scored(*totals: float) -> Group:
    group = make_group([2, 4, 6][: len(totals)])
    for trajectory, total in zip(group.trajectories, totals, strict=True):
        trajectory.score = Score(total, {"exact": total / 2})
    return group


def test_rewards_parts_and_lengths_are_averaged_over_trajectories() -> None:
    stats = rollout_stats(numbers_of([scored(0.0, 2.0), scored(4.0, 4.0)]), failures=[])
    assert stats["reward/mean"] == 2.5
    assert stats["reward/std"] == pytest.approx(math.sqrt((6.25 + 0.25 + 2.25 + 2.25) / 4))
    assert stats["reward/exact"] == 1.25
    assert stats["completion/num_tokens_mean"] == 3.0
    assert stats["reward/zero_variance_groups"] == 0.5


def test_rewards_that_differ_by_rounding_alone_have_no_variance() -> None:
    stats = rollout_stats(
        numbers_of([scored(-0.19, -0.19000000000000006), scored(0.3, 0.1 + 0.2)]), failures=[]
    )
    assert stats["reward/zero_variance_groups"] == 1.0


def test_sources_have_their_own_parts_and_means() -> None:
    """A part that one source's rewards do not have is not a zero there."""
    group, other = scored(1.0, 3.0), make_group([2, 2], sample=make_sample(source="boxes"))
    for trajectory, parts in zip(other.trajectories, ({"iou": 0.5}, {}), strict=True):
        trajectory.score = Score(5.0, parts)
    stats = rollout_stats(numbers_of([group, other]), failures=[])
    assert (stats["reward/exact"], stats["reward/iou"]) == (1.0, 0.25)
    assert stats["reward_by_source/boxes"] == 5.0
    assert [name for name in stats if name.startswith("reward_by_source/")] == ["reward_by_source/boxes"]


def test_a_trajectory_that_could_not_be_scored_is_counted_and_is_not_a_zero() -> None:
    group = scored(2.0, 2.0)
    group.trajectories[1].score = None
    stats = rollout_stats(
        numbers_of([group, scored(2.0, 4.0)]), failures=["reward 'x', sample 's': ValueError"]
    )
    assert stats["reward/mean"] == pytest.approx(8 / 3)
    assert stats["failures/reward"] == 1.0
    assert stats["reward/zero_variance_groups"] == 0.0  # the failed group has no say


def test_a_step_in_which_every_reward_failed_has_no_mean() -> None:
    group = Group([make_trajectory(make_sample(), [1, 2], reward=None)])
    stats = rollout_stats(numbers_of([group]), failures=["no"])
    assert math.isnan(stats["reward/mean"])
    assert stats["reward/zero_variance_groups"] == 0.0


def test_truncated_completions_are_a_fraction() -> None:
    group = scored(0.0, 1.0)
    group.trajectories[0].outcome = "truncated"
    assert rollout_stats(numbers_of([group]), [])["completion/truncated_fraction"] == 0.5
