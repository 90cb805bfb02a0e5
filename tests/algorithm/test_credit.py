"""Credit by turn and token: closed forms, and that masks and ledgers do not mix tokens up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import make_generation, make_sample, no_pixels, text_prompt
from hypothesis import example, given
from hypothesis import strategies as st

from vlrl.algorithm.advantages.turns import (
    discounted_advantages,
    returns,
    state_advantages,
    turn_rewards,
)
from vlrl.algorithm.credit import assign_credit
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.errors import ConfigError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.registry import resolve
from vlrl.rollout.session import Session
from vlrl.rounding import summed
from vlrl.types import Group, Score, Trajectory

TURN = tuple[list[int], float, str]  # generated tokens, reward, state in which they were generated


def episode(
    turns: list[TURN], total: float | None = None, *, forks: bool = False, **flags: Any
) -> Trajectory:
    """An episode of these turns; with forks, each lies in a ledger of its own."""
    session = Session(make_sample([1, 2]), 0)
    for number, (ids, reward, state) in enumerate(turns):
        if number and forks:
            session.fork(text_prompt([1, 2, 3]), (), ())
        elif number:
            session.append_observation(text_prompt([7], session.next_position), ())
        session.state = state
        session.append_action(make_generation(ids, finished=number not in flags.get("cut", ())))
        session.grade(reward, invalid=number in flags.get("invalid", ()))
    trajectory = session.trajectory("", "ok", 0.0)
    value = summed(reward for _, reward, _ in turns) if total is None else total  # as `ComposedReward` adds
    trajectory.score = Score(value, {}, tuple(reward for _, reward, _ in turns))
    return trajectory


def by_token(group: Group) -> list[list[list[tuple[float, bool]]]]:
    """[n][num_ledgers][num_tokens] of (advantage, trained)."""
    return [
        [list(zip(a.tolist(), m.tolist(), strict=True)) for a, m in zip(c.advantages, c.trained, strict=True)]
        for c in group.credits
    ]


def credited(group: Group, masks: Any = (), **options: Any) -> Group:
    assign_credit([group], AlgorithmConfig(scale_by_std=False, **options), masks)
    return group


def test_an_episode_s_advantage_is_every_generated_token_s() -> None:
    group = Group([episode([([5, 6], 0, "a"), ([8], 1, "b")]), episode([([5], 0, "a")])])
    assert by_token(credited(group)) == [
        [[(0, False), (0, False), (0.5, True), (0.5, True), (0, False), (0.5, True)]],
        [[(0, False), (0, False), (-0.5, True)]],
    ]


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=6), st.just(0.0) | st.floats(0.1, 1.0))
def test_returns_are_the_discounted_sum_of_what_is_to_come(rewards: list[float], discount: float) -> None:
    expected = [sum(discount**k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))]
    assert np.allclose(returns(np.array(rewards, np.float64), discount), expected, atol=1e-5)


def test_a_score_beyond_the_turns_own_rewards_falls_on_the_last_turn() -> None:
    assert turn_rewards(episode([([1], 0.25, "a"), ([1], 0, "b")], total=1.0)).tolist() == [0.25, 0.75]
    assert turn_rewards(episode([([1], 0.25, "a"), ([1], 1, "b")])).tolist() == [0.25, 1.0]


@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=12).flatmap(
        lambda steps: st.lists(st.permutations(steps), min_size=2, max_size=4)
    ),
    st.sampled_from(["discounted", "turn_groups", "state_groups"]),
)
@example([[-15, 9, -24, 30], [-15, -24, 9, 30]], "state_groups")  # plain sums differ
def test_equal_returns_of_decimal_rewards_in_other_orders_are_worth_the_same_at_the_start(
    histories: list[list[int]], credit: str
) -> None:
    """All are in "start" at first, and everything to come is worth the same there, whatever the order."""
    played = [
        episode([([5], 0.01 * step, f"{n}.{i}" if i else "start") for i, step in enumerate(steps)])
        for n, steps in enumerate(histories)
    ]
    scaled = {"scale_by_std": True, "credit": credit}
    group = Group(played)
    assign_credit([group], AlgorithmConfig(**scaled))
    first = [next(a for a, trained in ledgers[0] if trained) for ledgers in by_token(group)]
    if credit == "discounted":  # among all turns of the group
        assert np.ptp(first) < 1e-5
    else:
        assert not np.any(first)


def test_what_rounding_leaves_for_the_last_turn_is_nothing() -> None:
    """Environments' rewards of 0.1, 0.2 and 0 score 0.3 or its neighbour: no last turn is better for it."""
    turns: list[TURN] = [([1], 0.1, "a"), ([1], 0.2, "b"), ([1], 0, "c")]
    assert 0.1 + 0.2 != 0.3
    for total in (0.3, 0.1 + 0.2):
        assert turn_rewards(episode(turns, total=total)).tolist() == [0.1, 0.2, 0.0]
    assert returns(np.array([0.1, 0.2, -0.3]), 1.0)[0] == 0.0


def test_discounted_advantages_by_hand() -> None:
    """γ = ½: returns (¼, ½, 1) and (0); their mean is 7/16."""
    rewards = [np.array([0, 0, 1], np.float64), np.array([0], np.float64)]
    found = discounted_advantages(rewards, discount=0.5, scale_by_std=False)
    assert [x.tolist() for x in found] == [[-3 / 16, 1 / 16, 9 / 16], [-7 / 16]]
    scaled = discounted_advantages(rewards, discount=0.5, scale_by_std=True)
    deviation = np.std([0.25, 0.5, 1, 0], ddof=1)
    assert np.allclose(np.concatenate(scaled), np.concatenate(found) / deviation)


def test_turn_groups_by_hand() -> None:
    """γ = ½: first turns' returns ½ and ¼, second ones' 1 and ½; the third turn was played once."""
    group = Group(
        [
            episode([([5], 0, "a"), ([6], 1, "b")]),
            episode([([5], 0, "c"), ([6], 0, "b"), ([7], 1, "d")]),
        ]
    )
    credited(group, credit="turn_groups", discount=0.5)
    generated = [[a for a, trained in ledgers[0] if trained] for ledgers in by_token(group)]
    assert generated == [[1 / 8, 1 / 4], [-1 / 8, -1 / 4, 0]]


def test_state_advantages_by_hand() -> None:
    """GiGPO: both are in "a" and "b"; "c" was met once. γ = ½."""
    rewards = [np.array([0, 1], np.float64), np.array([0, 0, 0], np.float64)]
    states = [["a", "b"], ["a", "c", "b"]]
    found = state_advantages(rewards, states, discount=0.5, scale_by_std=False)
    # a: returns ½ and 0; b: 1 and 0.
    assert [x.tolist() for x in found] == [[0.25, 0.5], [-0.25, 0.0, -0.5]]


def test_gigpo_is_the_sum_of_both() -> None:
    group = Group([episode([([5], 0, "a"), ([6], 1, "b")]), episode([([5], 0, "a"), ([6], 0, "b")])])
    credited(group, credit="state_groups", discount=0.5, state_weight=2.0)
    generated = [[a for a, trained in ledgers[0] if trained] for ledgers in by_token(group)]
    assert generated == [[0.5 + 2 * 0.25, 0.5 + 2 * 0.5], [-0.5 - 2 * 0.25, -0.5 - 2 * 0.5]]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-1, 1)), min_size=2, max_size=12))
def test_advantages_sum_to_zero_within_every_state(turns: list[tuple[str, float]]) -> None:
    half = len(turns) // 2
    parts = [turns[:half], turns[half:]]
    rewards = [np.array([r for _, r in part], np.float64) for part in parts]
    states = [[state for state, _ in part] for part in parts]
    found = np.concatenate(state_advantages(rewards, states, discount=1.0, scale_by_std=False))
    names = np.array([state for state, _ in turns])
    for state in "abc":
        assert abs(found[names == state].sum()) < 1e-4


@pytest.mark.parametrize("credit", ["episode", "discounted", "turn_groups", "state_groups"])
def test_a_failed_group_gets_zeros(credit: str) -> None:
    group = Group([episode([([5], 1, "a")]), episode([([5], 0, "a")])])
    group.trajectories[0].score = None
    assert all(a == 0 for ledgers in by_token(credited(group, credit=credit)) for a, _ in ledgers[0])


@pytest.mark.parametrize("forks", [False, True])
@pytest.mark.parametrize(
    ("mask", "left"), [("truncated", [5, 5, 9]), ("invalid", [6, 9]), ("all_but_last", [9])]
)
def test_masks_leave_turns_out_of_the_loss_and_of_the_averages(
    mask: str, left: list[int], forks: bool
) -> None:
    turns: list[TURN] = [([5, 5], 0, "a"), ([6], 0, "b"), ([9], 1, "c")]
    group = Group(
        [
            episode(turns, forks=forks, cut=[1], invalid=[0]),
            episode(turns, 0.0, forks=forks, cut=[1], invalid=[0]),
        ]
    )
    credited(group, [resolve("masks", mask)])
    [micro_batches] = pack(
        [group],
        no_pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=100,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=False,
        ),
    )
    trained = sorted(int(i) for m in micro_batches for i in m.target_ids)
    assert trained == sorted(left * 2)
    assert np.isclose(sum(m.weights.sum() for m in micro_batches), 1.0)


def test_ledgers_that_begin_alike_share_their_prompt() -> None:
    """Forked turns of different episodes with the same context are branches of one tree."""
    turns: list[TURN] = [([5], 0, "a"), ([6], 1, "b")]
    group = credited(Group([episode(turns, forks=True), episode(turns, 0.0, forks=True)]))
    [[batch]] = pack(
        [group],
        no_pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=100,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=False,
        ),
    )
    assert batch.input_ids.tolist() == [1, 2, 3]
    assert sorted(zip(batch.source_index.tolist(), batch.target_ids.tolist(), strict=True)) == [
        (1, 5), (1, 5), (2, 6), (2, 6),
    ]  # fmt: skip


def test_a_mask_of_one_s_own_and_what_is_said_of_a_wrong_one(tmp_path: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "def no_sixes(trajectory):\n"
        "    return [x.token_ids != 6 for x in trajectory.ledgers]\n"
        "def wrong(trajectory):\n"
        "    return [np.ones(1, bool)]\n"
    )
    turns: list[TURN] = [([5, 6], 0, "a")]
    group = Group([episode(turns), episode(turns, 1.0)])
    credited(group, [resolve("masks", f"{file}:no_sixes")])
    assert [c.num_trained for c in group.credits] == [1, 1]
    with pytest.raises(ConfigError, match=r"algorithm\.masks.*ledger 0 has 4"):
        credited(group, [resolve("masks", f"{file}:wrong")])
