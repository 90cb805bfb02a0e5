"""Credit in trees: every action that was generated is trained once, towards its result."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from builders import make_generation, make_sample, no_pixels, text_prompt
from hypothesis import given
from hypothesis import strategies as st

from vlrl.algorithm.credit import assign_credit, truncated
from vlrl.batch import MicroBatch
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.packing.options import Aggregation, PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.session import Session
from vlrl.tracking.group_numbers import num_generated_tokens
from vlrl.types import Group, Score, Trajectory

Way = tuple[list[list[int]], float]  # generated tokens by turn, reward


def act(session: Session, turns: list[list[int]], forks: bool) -> Session:
    for ids in turns:
        if session.num_turns and forks:
            session.fork(text_prompt([1, 2, 3]), (), ())
        elif session.num_turns:
            session.append_observation(text_prompt([7], session.next_position), ())
        session.append_action(make_generation(ids, finished=9 not in ids))
    return session


def leaf(session: Session, reward: float, trunk: int | None, num_shared: int) -> Trajectory:
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(reward, {})
    trajectory.trunk, trajectory.num_shared = trunk, num_shared
    return trajectory


def tree(first: int, shared: list[list[int]], ways: list[Way], *, forks: bool = False) -> list[Trajectory]:
    """A trunk and its branches as `vlrl.rollout.episodes` makes them; a single way is a whole episode."""
    point = act(Session(make_sample([1, 2]), first), shared, forks)
    trunk = (first, len(shared)) if len(ways) > 1 else (None, 0)
    return [
        leaf(act(point.branch(first + number), turns, forks), reward, *trunk)
        for number, (turns, reward) in enumerate(ways)
    ]


def packed(group: Group, aggregation: Aggregation = "token", **options: Any) -> MicroBatch:
    [[batch]] = pack(
        [group],
        no_pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=10_000,
            aggregation=aggregation,
            max_completion_tokens=8,
            keep_zero_advantage=True,
            **options,
        ),
    )
    return batch


@pytest.mark.parametrize("forks", [False, True])
def test_the_tokens_of_a_tree_by_hand(forks: bool) -> None:
    """Rewards 1 and 0 behind [5, 6], 0 and 0 behind [8]: V = 1/2 and 0, and 1/4 at the root."""
    group = Group(
        tree(0, [[5, 6]], [([[11]], 1.0), ([[12], [13]], 0.0)], forks=forks)
        + tree(2, [[8]], [([[14, 15]], 0.0), ([[16]], 0.0)], forks=forks)
    )
    assign_credit([group], AlgorithmConfig(scale_by_std=False))
    batch = packed(group)
    found = sorted(zip(batch.target_ids.tolist(), batch.advantages.tolist(), strict=True))
    assert found == [
        (5, 0.25), (6, 0.25), (8, -0.25), (11, 0.5), (12, -0.5), (13, -0.5), (14, 0), (15, 0), (16, 0),
    ]  # fmt: skip
    assert num_generated_tokens(group) == 9
    assert np.allclose(batch.weights, 1 / 9)


def test_masks_hold_in_trees_too() -> None:
    group = Group(
        tree(0, [[5, 9]], [([[11]], 1.0), ([[12, 9]], 0.0)]) + tree(2, [[8]], [([[14]], 0.0), ([[16]], 0.0)])
    )
    assign_credit([group], AlgorithmConfig(scale_by_std=False), [truncated])
    assert sorted(packed(group).target_ids.tolist()) == [8, 11, 14, 16]


TURNS = st.lists(st.lists(st.integers(10, 99), min_size=1, max_size=3), min_size=1, max_size=3)
WAYS = st.lists(st.tuples(TURNS, st.floats(-1, 1)), min_size=1, max_size=3)
TREES = st.lists(st.tuples(TURNS, WAYS), min_size=2, max_size=3)


@given(TREES, st.booleans(), st.sampled_from(["token", "sequence"]))
def test_every_generated_token_is_trained_once_and_the_weights_add_up_as_in_plain_rows(
    trees: list[tuple[list[list[int]], list[Way]]], forks: bool, aggregation: Aggregation
) -> None:
    trajectories: list[Trajectory] = []
    generated: Counter[int] = Counter()
    for shared, ways in trees:
        trajectories += tree(len(trajectories), shared, ways, forks=forks)
        generated += Counter(i for ids in shared for i in ids)
        generated += Counter(i for turns, _ in ways for ids in turns for i in ids)
    group = Group(trajectories)
    assign_credit([group], AlgorithmConfig())
    batch = packed(group, aggregation)
    assert Counter(batch.target_ids.tolist()) == generated
    assert num_generated_tokens(group) == generated.total()
    assert np.isclose(batch.weights.sum(), 1.0)
