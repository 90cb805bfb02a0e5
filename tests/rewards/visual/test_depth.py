"""Depth order by hand, and nothing for what is not an order of the names."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from images import think

from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.visual.depth import depth_order

DEPTHS = {"cup": 1.0, "Chair": 2.0, "door": 4.0}


def score(said: str, answer: Any = DEPTHS, **options: Any) -> float:
    return depth_order(think(said), answer, **options)


def test_values_by_hand() -> None:
    for said in ("cup, chair, door", '["Cup", "chair", "door"]', "cup > chair > door", "cup\nchair\ndoor"):
        assert score(said) == 1
    assert score("chair, cup, door") == pytest.approx(1 / 3)
    assert score("chair, door, cup") == score("door, chair, cup") == 0
    assert depth_order("cup, chair, door", DEPTHS, part="whole") == 1
    assert score("cup, chair, door", '{"cup": 1, "chair": 2, "door": 4}') == 1
    assert resolve("rewards", "depth_order") is depth_order


def test_what_is_equally_far_may_stand_either_way() -> None:
    near = {"a": 1.0, "b": 1.01, "c": 3.0}
    assert score("a, b, c", near) == score("b, a, c", near) == 1
    assert score("b, a, c", near, tolerance=0.0) == pytest.approx(1 / 3)
    with pytest.raises(ConfigError, match="tolerance"):
        score("a", near, tolerance=-1)


def test_a_random_order_is_worth_little() -> None:
    names = {name: 2.0**number for number, name in enumerate("abcde")}
    values = [score(", ".join(order), names) for order in permutations(names)]
    assert sum(values) / len(values) < 0.2


@pytest.mark.parametrize(
    "said",
    ["", "cup", "cup, chair", "cup, chair, door, cup", "cup, chair, door, table", "the cup is nearest",
     "[" * 9000, '["cup", "chair", "door"', "cup, chair, door" * 100, "x" * 30_000, '{"cup": 1}', "1, 2, 4"],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_order_scores_nothing(said: str) -> None:
    assert score(said) == 0


@pytest.mark.parametrize(
    "answer",
    [None, "", "cup", [], {}, {"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 0}, {"a": 1, "b": float("nan")},
     {"a": 1, "A": 2}, {"a, b": 1, "c": 2}, {"a": "1", "b": "2"}],
    ids=str,
)  # fmt: skip
def test_a_sample_without_an_order_is_a_failure_not_a_zero(answer: Any) -> None:
    for said in ("", "a, b"):
        with pytest.raises(ValueError, match="sample"):
            score(said, answer)
