"""Relaxed accuracy and OCRBench's substring on cases worked out from their definitions."""

from __future__ import annotations

import pytest

from vlrl.rewards.benchmarks.texts import answer_contained, relaxed_accuracy


@pytest.mark.parametrize(
    ("said", "answer", "score"),
    [
        ("105", "100", 1),  # 5 % is near enough
        ("95", "100", 1),
        ("105.01", "100", 0),
        ("-100", "100", 0),
        ("-95", "-100", 1),
        ("0.12", "12%", 1),
        ("12%", "0.12", 1),
        ("12", "12%", 0),
        ("0", "0", 1),  # 5 % of nothing: compared as texts
        ("0.0", "0", 0),
        ("Yes", "yes", 1),
        ("yes.", "yes", 0),
        ("1,000", "1000", 0),  # float() reads no comma
        ("1000 units", "1000", 0),
        ("nan", "100", 0),
        ("inf", "100", 0),
        ("", "100", 0),
        ("b", ["a", "B"], 1),
    ],
)
def test_relaxed_accuracy(said: str, answer: str, score: float) -> None:
    assert relaxed_accuracy(said, answer, part="whole") == score


@pytest.mark.parametrize(
    ("said", "answer", "is_formula", "score"),
    [
        ("It is CENTRE.", "centre", False, 1),
        ("two\nlines", "Two lines", False, 1),
        ("cen tre", "centre", False, 0),
        ("centr", "centre", False, 0),
        ("a or b", ["b", "c"], False, 1),
        ("x ^ 2", "x^2", True, 1),
        ("x\n^2", "x ^ 2", True, 1),
        ("X^2", "x^2", True, 0),
        ("", "a", False, 0),
    ],
)
def test_answer_contained(said: str, answer: str, is_formula: bool, score: float) -> None:
    assert answer_contained(said, answer, is_formula=is_formula, part="whole") == score


@pytest.mark.parametrize("reward", [relaxed_accuracy, answer_contained])
def test_a_sample_without_an_answer_is_a_failure(reward: type[object]) -> None:
    with pytest.raises(ValueError, match="no 'answer'"):
        reward("a", None)  # type: ignore[call-arg]
