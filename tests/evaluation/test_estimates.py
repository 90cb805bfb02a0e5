"""Estimates by hand: the unbiased pass@k, the majority, and the intervals."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from io import StringIO
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from vlrl.cli.evaluation_table import evaluation_table
from vlrl.evaluation.answers import HeldoutAnswer, vote_of
from vlrl.evaluation.estimates import (
    Estimate,
    episode_values,
    estimate,
    ks,
    majority_at_k,
    pass_at_k,
    row_values,
)
from vlrl.evaluation.result import Evaluation


@pytest.mark.parametrize(("n", "c", "k"), [(1, 0, 1), (5, 2, 1), (5, 2, 3), (6, 1, 4), (6, 6, 2), (4, 3, 2)])
def test_pass_at_k_is_the_share_of_all_choices_of_k_with_one_that_passes(n: int, c: int, k: int) -> None:
    answers = [True] * c + [False] * (n - c)
    choices = list(itertools.combinations(answers, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))


def test_k_is_every_power_of_two_and_n() -> None:
    assert ks(1) == [1]
    assert ks(6) == [1, 2, 4, 6]
    assert ks(8) == [1, 2, 4, 8]


def test_the_majority_has_the_most_votes_and_a_tie_is_shared() -> None:
    assert majority_at_k(["a", "b", "b"], [1.0, 0.0, 0.0], 3) == 0.0
    assert majority_at_k(["a", "b", "a"], [1.0, 0.0, 0.0], 3) == 0.5  # one text that was scored in two ways
    assert majority_at_k(["a", "b"], [1.0, 0.0], 2) == 0.5
    assert majority_at_k(["a", "b", "c"], [1.0, 0.0, 0.0], 3) == pytest.approx(1 / 3)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=8),
    st.data(),
)
def test_the_majority_of_k_is_the_mean_over_all_choices_of_k(
    answers: list[tuple[str, float]], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(answers)))
    means = []
    for chosen in itertools.combinations(answers, k):
        counts = Counter(vote for vote, _ in chosen)
        tied = [value for vote, value in chosen if counts[vote] == max(counts.values())]
        means.append(fmean(tied))
    votes, values = zip(*answers, strict=True)
    assert majority_at_k(votes, values, k) == pytest.approx(fmean(means))


def test_rows_that_are_right_or_wrong_have_wilsons_interval() -> None:
    found = estimate([1.0] * 8 + [0.0] * 2)
    assert (found.value, found.num_rows) == (0.8, 10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)  # e.g. Newcombe 1998
    sure = estimate([1.0] * 10)
    assert (sure.low, sure.high) == pytest.approx((10 / (10 + 1.96**2), 1.0))


def test_graded_rows_are_resampled() -> None:
    """A resample's mean of two rows is 0.25, 0.5 or 0.75, the ends a quarter of the time each."""
    found = estimate([0.25, 0.75])
    assert (found.value, found.low, found.high) == (0.5, 0.25, 0.75)
    rows = [0.25, 0.75] * 200
    half = 1.96 * 0.25 / math.sqrt(len(rows))
    assert (estimate(rows).low, estimate(rows).high) == pytest.approx((0.5 - half, 0.5 + half), abs=0.003)
    assert estimate(rows) == estimate(rows)


def test_what_is_not_known_is_null() -> None:
    assert estimate([]).loggable() == {"value": None, "low": None, "high": None, "num_rows": 0}
    assert estimate([0.5]).loggable() == {"value": 0.5, "low": None, "high": None, "num_rows": 1}
    assert Estimate(0.5, 0.25, 0.75, 2).loggable() == {"value": 0.5, "low": 0.25, "high": 0.75, "num_rows": 2}


def answer(row: int, index: int, value: float | None, vote: str = "") -> HeldoutAnswer:
    return HeldoutAnswer("a", row, f"s{row}", "sampled", index, value, value, vote)


def test_an_answer_without_a_score_does_not_count() -> None:
    answers = [answer(0, 0, 1.0, "4"), answer(0, 1, None, "5"), answer(0, 2, 0.0, "5"), answer(1, 0, None)]
    values = row_values(answers, 3, 1.0)
    assert values["mean@3"] == values["pass@1"] == [0.5]
    assert values["pass@2"] == [1.0]
    assert values["pass@3"] == values["majority@3"] == values["greedy"] == []


def test_a_graded_reward_passes_at_the_threshold() -> None:
    values = row_values([answer(0, 0, 0.4), answer(0, 1, 0.6)], 2, 0.5)
    assert (values["mean@2"], values["pass@1"], values["pass@2"]) == ([0.5], [0.5], [1.0])


@pytest.mark.parametrize(
    ("completion", "vote"),
    [
        ("<think>It is 4.</think><answer> Four  Cats</answer>", "four cats"),
        ("Thus \\boxed{3}, or rather \\boxed{4}", "4"),
        ("<think>3 or \\boxed{4}</think>It is  5", "it is 5"),
        ("Yes", "yes"),
    ],
)
def test_a_vote_is_the_answer_without_the_thought(completion: str, vote: str) -> None:
    assert vote_of(completion) == vote


def test_numbers_of_episodes_are_means_by_row_and_of_the_greedy_ones_first() -> None:
    def played(row: int, how: str, **numbers: float) -> HeldoutAnswer:
        return replace(answer(row, 0, 1.0), how=how, episode=numbers)  # type: ignore[arg-type]

    answers = [
        played(0, "greedy", num_turns=2.0, harm=0.0),
        played(0, "sampled", num_turns=9.0, harm=1.0),
        played(1, "sampled", num_turns=4.0),
        played(1, "sampled", num_turns=6.0),
        answer(2, 0, 1.0),  # a question, or an episode that failed
    ]
    assert episode_values(answers) == {"episode/num_turns": [2.0, 5.0], "episode/harm": [0.0]}
    result = Evaluation(answers, num_samples=3)
    found = result.estimates()
    assert found["episode/num_turns"].value == 3.5 and found["episode/num_turns"].num_rows == 2
    assert "heldout/episode/num_turns" not in result.metrics()


def test_a_count_of_one_is_no_share() -> None:
    assert estimate([1.0] * 8, are_counts=True) == Estimate(1.0, 1.0, 1.0, 8)
    assert estimate([1.0] * 8).low < 1


def test_the_table_has_turns_and_invalid_actions_by_part_and_all_numbers_at_the_end() -> None:
    numbers = {"num_turns": 3.0, "invalid_fraction": 0.25, "harm": 1.0}
    answers = [replace(answer(row, 0, 1.0), episode=numbers, parts=("task=a",)) for row in range(3)]
    part = Evaluation(answers, num_samples=3)
    console = Console(width=120, record=True, file=StringIO())
    console.print(evaluation_table(replace(part, parts={"task=a": part})))
    lines = [line.split() for line in console.export_text().splitlines()]
    names = [next((word for word in line if word.startswith("episode/")), "") for line in lines]
    assert [name for name in names if name] == [
        "episode/num_turns",
        "episode/invalid_fraction",
        "episode/num_turns",
        "episode/invalid_fraction",
        "episode/harm",
    ]
