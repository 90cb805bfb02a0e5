"""Advantages of the registry: closed forms, sums that must vanish, and what a plug-in may return."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_generation, make_sample, no_pixels
from hypothesis import given
from hypothesis import strategies as st

from vlrl.algorithm.advantage import group_advantages
from vlrl.algorithm.advantages.baselines import opo, remax, reward, rloo
from vlrl.algorithm.advantages.best_of import best_of
from vlrl.algorithm.advantages.gdpo import gdpo
from vlrl.algorithm.advantages.pass_at_k import pass_at_k
from vlrl.algorithm.credit import assign_credit, turn_advantages
from vlrl.algorithm.normalize import batch_normalized
from vlrl.config.algorithm import AlgorithmConfig, FunctionConfig
from vlrl.errors import ConfigError
from vlrl.packing.minibatch import part_of
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.session import Session
from vlrl.types import Group, Score, Trajectory

REWARDS = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=9)


def episode(total: float | None, length: int = 2, **parts: float) -> Trajectory:
    session = Session(make_sample([1, 2]), 0)
    session.append_action(make_generation(range(5, 5 + length)))
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = None if total is None else Score(total, parts)
    return trajectory


def values(found: Any) -> list[float]:
    """[n]: of episodes of one turn."""
    return [float(of_turns[0]) for of_turns in found]


def test_rloo_by_hand() -> None:
    """1 - mean(0, 0.5), 0 - mean(1, 0.5), 0.5 - mean(1, 0)."""
    assert values(rloo([episode(r) for r in (1.0, 0.0, 0.5)])) == pytest.approx([0.75, -0.75, 0.0])


def test_remax_by_hand() -> None:
    """1 - 0.5, 0 - 0.5, 0.5 - 0.5, where the greedy reward is 0.5; one completion is enough."""
    greedy = episode(0.5, 7)
    found = remax([episode(r) for r in (1.0, 0.0, 0.5)], greedy=greedy)
    assert values(found) == pytest.approx([0.5, -0.5, 0.0])
    assert values(remax([episode(1.0)], greedy=greedy)) == [0.5]


@given(REWARDS, st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([-2.0, 0.125, 64.0]))
def test_remax_does_not_see_a_constant_that_all_rewards_have(
    rewards: list[float], baseline: float, shift: float
) -> None:
    """The numbers are binary fractions, so their sums are exact."""
    plain = remax([episode(r) for r in rewards], greedy=episode(baseline))
    shifted = remax([episode(r + shift) for r in rewards], greedy=episode(baseline + shift))
    assert values(plain) == values(shifted) == [r - baseline for r in rewards]


def test_remax_of_rewards_that_differ_from_the_greedy_one_by_rounding_is_0() -> None:
    assert values(remax([episode(0.1 + 0.2)], greedy=episode(0.3))) == [0.0]


def test_raft_imitates_the_best_alone() -> None:
    group = [episode(r) for r in (0.5, 1.0, 0.0, 1.0)]
    assert values(best_of(group)) == [0, 1, 0, 0]
    assert values(best_of(group, num_best=3)) == [1, 1, 0, 1]
    assert values(best_of(group, num_best=3, min_reward=0.75)) == [0, 1, 0, 1]
    assert values(best_of([episode(0.0), episode(0.0)])) == [0, 0]  # neither is better
    assert values(best_of([episode(1.0), episode(1.0)], min_reward=1.0)) == [1, 0]  # but they may be good


@given(REWARDS)
def test_rloo_is_the_distance_from_the_mean_a_little_enlarged(rewards: list[float]) -> None:
    n = len(rewards)
    expected = group_advantages(rewards, scale_by_std=False) * n / (n - 1)
    assert values(rloo([episode(r) for r in rewards])) == pytest.approx(expected.tolist(), abs=1e-6)


def test_opo_weights_the_baseline_by_length() -> None:
    """b = (1·1 + 3·0) / 4."""
    assert values(opo([episode(1.0, 1), episode(0.0, 3)])) == pytest.approx([0.75, -0.25])


@given(REWARDS, st.data())
def test_opo_has_no_sum_over_tokens(rewards: list[float], data: st.DataObject) -> None:
    lengths = [data.draw(st.integers(1, 6)) for _ in rewards]
    found = values(opo([episode(r, n) for r, n in zip(rewards, lengths, strict=True)]))
    assert sum(n * a for n, a in zip(lengths, found, strict=True)) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("advantage", [rloo, opo])
def test_rewards_that_differ_by_rounding_are_equal(advantage: Any) -> None:
    assert values(advantage([episode(0.1 + 0.2), episode(0.3), episode(0.3)])) == [0.0, 0.0, 0.0]


def test_gdpo_tells_apart_what_a_sum_would_not() -> None:
    """(1, 0), (0, 1), (0, 0): the second part is twice as rare in value, and each is normalised by itself."""
    episodes = [episode(1.0, a=1.0, b=0.0), episode(1.0, a=0.0, b=0.5), episode(0.0, a=0.0, b=0.0)]
    found = values(gdpo(episodes, rewards={"a": 2.0, "b": 1.0}))
    a = group_advantages([1.0, 0.0, 0.0], scale_by_std=True)
    b = group_advantages([0.0, 0.5, 0.0], scale_by_std=True)
    assert found == pytest.approx((2 * a + b).tolist())
    assert found[0] != pytest.approx(found[1])
    assert values(gdpo(episodes, rewards={"total": 1.0})) == pytest.approx(
        group_advantages([1.0, 1.0, 0.0], scale_by_std=True).tolist()
    )


def test_gdpo_names_the_part_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="reward 'c' is no part of the score of sample 's', which has a, b"):
        gdpo([episode(1.0, a=1.0, b=0.0)] * 2, rewards={"a": 1.0, "c": 1.0})


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("num_right", range(1, 6))
def test_pass_at_k_is_the_mean_over_all_subsets(num_right: int, k: int) -> None:
    """Counted: a subset's reward is its best, normalised over subsets; an episode has its subsets' mean."""
    rewards = [1.0] * num_right + [0.0] * (6 - num_right)
    subsets = list(combinations(range(6), k))
    of_subsets = np.array([max(rewards[i] for i in subset) for subset in subsets])
    mean, deviation = of_subsets.mean(), of_subsets.std()
    expected = [
        np.mean([(r - mean) / deviation for r, s in zip(of_subsets, subsets, strict=True) if i in s])
        if deviation
        else 0.0
        for i in range(6)
    ]
    found = values(pass_at_k([episode(r) for r in rewards], k=k))
    assert found == pytest.approx(expected, abs=1e-6)
    assert sum(found) == pytest.approx(0.0, abs=1e-5)


def test_pass_at_1_is_grpo_of_the_passes_up_to_the_kind_of_deviation() -> None:
    rewards = [1.0, 0.0, 0.0, 1.0, 0.0]
    grpo = group_advantages(rewards, scale_by_std=True) * np.sqrt(5 / 4)  # over n, not n - 1
    assert values(pass_at_k([episode(r) for r in rewards], k=1)) == pytest.approx(grpo.tolist())


def test_pass_at_k_takes_a_named_reward_and_what_failures_left() -> None:
    episodes = [episode(0.0, accuracy=0.9), episode(5.0, accuracy=0.1)]
    found = values(pass_at_k(episodes, k=8, reward="accuracy", threshold=0.5))
    assert found == [0.0, 0.0]  # both are in the one subset there is
    assert values(pass_at_k(episodes, k=1, reward="accuracy", threshold=0.5)) == [1.0, -1.0]


def test_the_reward_itself_has_no_baseline() -> None:
    assert values(reward([episode(0.5), episode(0.5)])) == [0.5, 0.5]


def test_a_batch_has_mean_0_and_deviation_1_over_its_trained_tokens() -> None:
    """Two groups of unequal lengths; a member without a score counts for nothing and stays at 0 tokens."""
    groups = [
        Group([episode(1.0, 3), episode(0.0, 1), episode(None, 4)]),
        Group([episode(4.0, 2), episode(2.0, 5)]),
    ]
    assign_credit(groups, AlgorithmConfig(credit=FunctionConfig(name="reward")))
    before = [c.advantages[0].copy() for g in groups for c in g.credits]
    found = batch_normalized(groups)
    tokens = np.concatenate(
        [c.advantages[0][c.trained[0]] for g in found for c in g.credits if c.counts]
    ).astype(np.float64)
    assert len(tokens) == 11
    assert tokens.mean() == pytest.approx(0.0, abs=1e-6) and tokens.std() == pytest.approx(1.0, abs=1e-6)
    raw = np.repeat([1.0, 0.0, 4.0, 2.0], [3, 1, 2, 5])
    assert tokens == pytest.approx((raw - raw.mean()) / raw.std(), abs=1e-6)
    after = [c.advantages[0] for g in groups for c in g.credits]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), (
        "the groups stay as they were"
    )


def test_equal_advantages_of_a_batch_are_no_signal() -> None:
    groups = [Group([episode(0.3), episode(0.1 + 0.2)])]
    assign_credit(groups, AlgorithmConfig(credit=FunctionConfig(name="reward")))
    assert not any(c.advantages[0].any() for g in batch_normalized(groups) for c in g.credits)
    assert batch_normalized([]) == []


def test_minibatches_are_normalised_over_the_whole_step() -> None:
    """The second half alone would have other numbers; and a group of rewards 0 is trained."""
    groups = [Group([episode(1.0), episode(1.0)]), Group([episode(0.0), episode(0.0)])]
    assign_credit(groups, AlgorithmConfig(credit=FunctionConfig(name="reward")))
    options = PackOptions(
        num_ranks=1, max_tokens=64, max_completion_tokens=8, normalize="batch", keep_zero_advantage=False
    )
    [[first]] = pack(part_of(groups, slice(0, 1), options), no_pixels, options)
    [[second]] = pack(part_of(groups, slice(1, 2), options), no_pixels, options)
    assert first.advantages.tolist() == [1.0] * 4 and second.advantages.tolist() == [-1.0] * 4


def plugin(tmp_path: Path, body: str) -> AlgorithmConfig:
    file = tmp_path / "mine.py"
    file.write_text(f"def mine(trajectories, *, scale=1.0):\n    return {body}\n")
    return AlgorithmConfig(credit=FunctionConfig(name=f"{file}:mine", options={"scale": 2.0}))


def test_a_plugin_returns_a_number_or_one_a_turn(tmp_path: Path) -> None:
    options = plugin(tmp_path, "[scale * t.score.total if i else [7.0] for i, t in enumerate(trajectories)]")
    found = turn_advantages([episode(1.0), episode(3.0)], options)
    assert [f.tolist() for f in found] == [[7.0], [6.0]] and found[0].dtype == np.float32


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("[1.0]", "returned 1 advantages for 2 trajectories"),
        ("[[1.0, 2.0], 1.0]", r"for one of 1 turns it returned \[1.0, 2.0\]"),
        ("[float('nan'), 1.0]", "must return a finite number"),
    ],
)
def test_a_plugin_that_returns_something_else_is_named(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        turn_advantages([episode(1.0), episode(0.0)], plugin(tmp_path, body))
