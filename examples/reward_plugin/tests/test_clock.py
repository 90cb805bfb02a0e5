from __future__ import annotations

from typing import Any

import pytest
from vlrl_clock_reward.clock import clock_time


def said(text: str) -> str:
    return f"<think>The short hand is between two and three.</think><answer>{text}</answer>"


@pytest.mark.parametrize(
    ("text", "answer", "value"),
    [
        ("2:40", "2:40", 1.0),
        ("14:40", "2:40", 1.0),
        ("2:55", "2:40", 0.5),
        ("12:05", "11:55", 1 - 10 / 30),
        ("8:40", "2:40", 0.0),
    ],
)
def test_it_falls_with_the_minutes(text: str, answer: str, value: float) -> None:
    assert clock_time(said(text), answer).value == pytest.approx(value)


@pytest.mark.parametrize(
    "completion", ["", "2:40", said(""), said("2:40 or 8:40"), said("2:75"), said("2:40") * 2]
)
def test_what_is_no_time_scores_nothing(completion: str) -> None:
    assert clock_time(completion, "2:40").value == 0.0


@pytest.mark.parametrize("answer", [None, "noon", 240])
def test_a_broken_sample_is_no_zero(answer: Any) -> None:
    with pytest.raises(ValueError, match="give a time"):
        clock_time(said("2:40"), answer)
