"""Group-relative advantages against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders import advantages_of, make_config, make_group
from hypothesis import given
from hypothesis import strategies as st

from vlrl.algorithm.advantage import group_advantages, tree_advantages
from vlrl.algorithm.credit import assign_credit
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.errors import ConfigError
from vlrl.rounding import summed
from vlrl.types import Score

REWARDS = st.floats(-100, 100, width=32)


@given(REWARDS, st.integers(2, 64), st.booleans())
def test_equal_rewards_have_advantages_of_exactly_zero(reward: float, n: int, scale: bool) -> None:
    assert group_advantages([reward] * n, scale_by_std=scale).tolist() == [0.0] * n


@pytest.mark.parametrize("scale", [True, False])
def test_equal_rewards_whose_mean_is_off_by_rounding_still_have_exactly_zero(scale: bool) -> None:
    reward, n = 0.9, 7
    assert np.full(n, reward).mean() != reward  # the trap: a deviation of 1e-16 divided by one of 1e-16
    assert group_advantages([reward] * n, scale_by_std=scale).tolist() == [0.0] * n
    float32 = np.full(n, reward, np.float32).tolist()
    assert group_advantages(float32, scale_by_std=scale).tolist() == [0.0] * n


FAILED = [-0.19, -0.19, -0.19, -0.19000000000000003, -0.19000000000000006, -0.19, -0.19, -0.19000000000000006]
"""Returns of eight episodes of FrozenLake that were paid -0.01 a move and failed alike."""


@pytest.mark.parametrize("scale", [True, False])
def test_rewards_that_differ_in_their_last_bits_are_equal(scale: bool) -> None:
    assert not group_advantages(FAILED, scale_by_std=scale).any()
    for of_part in tree_advantages(FAILED, [0, 0, 0, 0, 4, 4, 4, 4], scale_by_std=scale):
        assert not of_part.any()
    rewards = [*FAILED[:4], 1.0, 1.0, 1.0, 1.0]
    before, after = tree_advantages(rewards, [0, 0, 0, 0, 4, 4, 4, 4], scale_by_std=scale)
    assert before.all()
    assert not after.any()  # and with it the zero-variance filter's question
    before, after = tree_advantages([-0.19, 0.0, -0.19000000000000006, 0.0], [0, 0, 2, 2], scale_by_std=scale)
    assert not before.any()


@given(
    st.lists(st.integers(-300, 300), min_size=1, max_size=20).flatmap(
        lambda steps: st.tuples(st.just(steps), st.lists(st.permutations(steps), min_size=1, max_size=7))
    ),
    st.booleans(),
)
def test_returns_of_the_same_hundredths_in_other_orders_have_no_advantages(
    histories: tuple[list[int], list[list[int]]], scale: bool
) -> None:
    first, others = histories
    played = [first, *others, [sum(first)]]  # the last one is paid all at once
    returns = [sum(step * 0.01 for step in steps) for steps in played]
    if sum(first) == 0:  # then only `summed` can know that what is left is rounding
        returns = [summed(step * 0.01 for step in steps) for steps in played]
    assert not group_advantages(returns, scale_by_std=scale).any()
    trees = [0] * len(returns) + [1] * len(returns)
    before, after = tree_advantages([*returns, *returns], trees, scale_by_std=scale)
    assert not before.any()
    assert not after.any()


@pytest.mark.parametrize("size", [1e-201, 1.0, 1e200])
def test_rewards_of_any_size_have_the_same_advantages(size: float) -> None:
    assert group_advantages([size, 0.0, 0.0, 0.0], scale_by_std=True).tolist() == [1.5, -0.5, -0.5, -0.5]
    before, after = tree_advantages([size, 0.0, 0.0, 0.0], [0, 0, 1, 1], scale_by_std=True)
    assert (before + after).tolist() == [1.5, -0.5, -0.5, -0.5]


def test_grpo_divides_by_the_unbiased_deviation() -> None:
    # mean 1/4; squared deviations 9/16 + 3 · 1/16 = 3/4; variance (3/4)/3 = 1/4; deviation 1/2
    assert group_advantages([1.0, 0.0, 0.0, 0.0], scale_by_std=True).tolist() == [1.5, -0.5, -0.5, -0.5]


def test_dr_grpo_only_subtracts_the_mean() -> None:
    assert group_advantages([1.0, 0.0, 0.0, 0.0], scale_by_std=False).tolist() == [0.75, -0.25, -0.25, -0.25]


@given(st.lists(REWARDS, min_size=2, max_size=16), st.floats(0.5, 4), st.floats(-8, 8))
def test_scaled_advantages_ignore_an_affine_change_of_the_reward(
    rewards: list[float], scale: float, shift: float
) -> None:
    if np.ptp(rewards) < 1e-3:  # beyond what an affine change may make rounding of
        return
    changed = [scale * r + shift for r in rewards]
    before = group_advantages(rewards, scale_by_std=True)
    assert np.allclose(before, group_advantages(changed, scale_by_std=True), atol=1e-3)
    assert math.isclose(float(before.sum(dtype=np.float64)), 0.0, abs_tol=1e-4)
    assert math.isclose(float(before.std(ddof=1, dtype=np.float64)), 1.0, rel_tol=1e-4)


def test_a_group_of_one_is_refused_by_the_function() -> None:
    with pytest.raises(ConfigError, match=r"rollout\.group_size ≥ 2"):
        group_advantages([1.0], scale_by_std=False)


def test_a_group_of_one_is_refused_by_the_config() -> None:
    with pytest.raises(ConfigError, match=r"rollout\.group_size"):
        make_config(rollout={"group_size": 1})


def test_a_failed_member_has_no_part_in_the_baseline_and_none_in_other_groups() -> None:
    part, fine = make_group([2, 2, 2], failed=True), make_group([2, 2])
    assign_credit([part, fine], AlgorithmConfig(scale_by_std=False))
    assert advantages_of(part) == [-0.5, 0.5, 0.0]
    assert advantages_of(fine) == [-0.5, 0.5]


def test_advantages_come_from_the_total_alone() -> None:
    group = make_group([1, 1])
    for trajectory, (total, part) in zip(group.trajectories, [(0.0, 5.0), (2.0, -5.0)], strict=True):
        trajectory.score = Score(total, {"length": part})
    assign_credit([group], AlgorithmConfig(scale_by_std=False))
    assert advantages_of(group) == [-1.0, 1.0]


# Trees.


def test_a_tree_by_hand() -> None:
    """V(b) = 1/2 and 0, V(root) = 1/4; the deviation of 1, 0, 0, 0 is 1/2."""
    before, after = tree_advantages([1, 0, 0, 0], [0, 0, 2, 2], scale_by_std=False)
    assert before.tolist() == [0.25, 0.25, -0.25, -0.25]
    assert after.tolist() == [0.5, -0.5, 0.0, 0.0]
    before, after = tree_advantages([1, 0, 0, 0], [0, 0, 2, 2], scale_by_std=True)
    assert before.tolist() == [0.5, 0.5, -0.5, -0.5]
    assert after.tolist() == [1.0, -1.0, 0.0, 0.0]


def test_a_tree_among_episodes_that_did_not_branch_by_hand() -> None:
    """V = 1/2 of two leaves, 1 and 0 of one each; V(root) = 1/2: a tree counts once, whatever its leaves."""
    before, after = tree_advantages([1, 0, 1, 0], [0, 0, 2, 3], scale_by_std=False)
    assert before.tolist() == [0.0, 0.0, 0.5, -0.5]
    assert after.tolist() == [0.5, -0.5, 0.0, 0.0]


@given(
    st.integers(2, 4).flatmap(
        lambda k: st.lists(st.lists(st.floats(-1, 1), min_size=k, max_size=k), min_size=2, max_size=4)
    ),
    st.booleans(),
)
def test_before_and_after_a_branch_point_add_up_to_the_advantage_of_the_episode(
    trees: list[list[float]], scale_by_std: bool
) -> None:
    rewards = [reward for tree in trees for reward in tree]
    names = [number for number, tree in enumerate(trees) for _ in tree]
    before, after = tree_advantages(rewards, names, scale_by_std=scale_by_std)
    assert np.allclose(before + after, group_advantages(rewards, scale_by_std=scale_by_std), atol=2e-6)
    assert np.allclose(before[:: len(trees[0])].sum(), 0, atol=1e-5)
    for name in set(names):
        assert abs(sum(a for a, n in zip(after, names, strict=True) if n == name)) < 1e-5


def test_equal_rewards_give_no_noise_and_one_tree_no_baseline() -> None:
    for value in (0.1, 1 / 3):
        before, after = tree_advantages([value] * 6, [0, 0, 0, 3, 3, 3], scale_by_std=True)
        assert not before.any()
        assert not after.any()
    _, after = tree_advantages([0.1] * 3 + [0.7] * 3, [0, 0, 0, 3, 3, 3], scale_by_std=True)
    assert not after.any()
    with pytest.raises(ConfigError, match=r"lower episodes\.branching\.num_branches"):
        tree_advantages([1, 0], [0, 0], scale_by_std=False)
