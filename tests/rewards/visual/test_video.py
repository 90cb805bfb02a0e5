"""Rewards on spans and orders of a video."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from images import think

from vlrl.errors import ConfigError
from vlrl.rewards.visual.video import event_order, temporal_iou

TRUE = [10.0, 20.0]


@pytest.mark.parametrize(
    "said",
    [
        "10 - 20",
        "10-20",
        "10.0 – 20.0",
        "10s to 20s",
        "10 to 20 seconds",
        "From 10.0 seconds to 20.0 seconds.",
        "between 10 and 20",
        "0:10 - 0:20",
        "00:10.0 - 00:20.00",
        "0:00:10, 0:00:20",
        "[10, 20]",
        '["0:10", "0:20"]',
        '{"start": 10, "end": 20.0}',
        "10, 20",
    ],
)
def test_a_span_in_every_form(said: str) -> None:
    assert temporal_iou(think(said), TRUE) == pytest.approx(1)
    assert temporal_iou(said, said, part="whole") == pytest.approx(1)  # the answer may be text as well


@pytest.mark.parametrize(
    "said",
    [
        "",
        "10",
        "20 - 10",
        "-10 - 20",
        "10 - 20 - 30",
        "10 - 20, 30 - 40",
        "[[10, 20]]",
        "[10, 20, 30]",
        "10 - 20 is when he jumps",
        "the span is 10 - 20",
        "0:70 - 0:80",
        "10 - 20 minutes",
        "nan - inf",
        "[NaN, 20]",
        "[10, Infinity]",
        "[10, 1e400]",
        "[true, 20]",
        '{"start": 10}',
        '{"start": 10, "end": 20, "start": 9}',
        '{"start": 10, "end": 20, "also": 3}',
        "[10, " + "9" * 6000 + "]",
        "ten to twenty",
        "10 - 20 " * 1000,
        "１０ - ２０",
    ],
)
def test_what_is_no_span_scores_nothing(said: str) -> None:
    assert temporal_iou(think(said), TRUE) == 0
    assert temporal_iou(said, TRUE) == 0  # without tags


@pytest.mark.parametrize(
    ("said", "expected"),
    [("15 - 25", 5 / 15), ("12 - 14", 0.2), ("0 - 100", 0.1), ("20 - 30", 0), ("15 - 15", 0), ("30 - 40", 0)],
)
def test_values(said: str, expected: float) -> None:
    assert temporal_iou(think(said), TRUE) == pytest.approx(expected)
    assert temporal_iou(think(said), TRUE, threshold=0.2) == float(expected >= 0.2)


SPANS = st.tuples(st.integers(0, 99), st.integers(1, 50)).map(lambda t: (t[0], t[0] + t[1]))


@given(SPANS, SPANS)
def test_it_is_the_share_of_the_seconds_in_either_that_are_in_both(
    a: tuple[int, int], b: tuple[int, int]
) -> None:
    first, second = set(range(*a)), set(range(*b))
    expected = len(first & second) / len(first | second)
    assert temporal_iou(think(f"{a[0]} - {a[1]}"), b) == pytest.approx(expected)
    assert temporal_iou(think(json.dumps(b)), a) == pytest.approx(expected)
    clock = f"{a[0] // 60}:{a[0] % 60:02} - {a[1] // 60}:{a[1] % 60:02}"
    assert temporal_iou(think(clock), b) == pytest.approx(expected)


@pytest.mark.parametrize(
    "answer",
    [None, "", "soon", 7, [], [5], [5, 5], [9, 3], [-1, 4], [0, float("nan")], [0, 10**400], {"start": 1}],
)
def test_a_sample_without_a_span_is_a_failure(answer: Any) -> None:
    with pytest.raises(ValueError, match="sample"):
        temporal_iou(think("1 - 2"), answer)


# Orders.


@pytest.mark.parametrize(
    "said", ["b, a, c", "b -> a -> c", "B > A > C", "b\na\nc", '["b", "a", "c"]', "b→a→c"]
)
def test_an_order_in_every_form(said: str) -> None:
    for measure in ("kendall", "position", "exact"):
        assert event_order(think(said), ["b", "a", "c"], measure=measure) == 1  # type: ignore[arg-type]
        assert event_order(think(said), "b, a, c", measure=measure) == 1  # type: ignore[arg-type]


def test_an_order_of_numbers() -> None:
    assert event_order(think("[2, 1, 3]"), [2, 1, 3]) == event_order(think("2, 1, 3"), "2, 1, 3") == 1


@pytest.mark.parametrize(
    "said",
    ["", "a", "a, b", "a, b, c, d", "a, b, b", "a, b, c, a, b, c", "a b c", "abc", "first a, b, c", "[1, 2",
     '[["a"], "b", "c"]', "a, b, c." , ",".join("abc" * 200), "[" * 5000, "a < b < c"],
)  # fmt: skip
def test_what_is_no_order_of_the_items_scores_nothing(said: str) -> None:
    for measure in ("kendall", "position", "exact"):
        assert event_order(think(said), ["a", "b", "c"], measure=measure) == 0  # type: ignore[arg-type]


@given(st.permutations("abcde"))
def test_orders_against_their_definitions(order: list[str]) -> None:
    answer = list("abcde")
    text = think(", ".join(order))
    pairs = list(itertools.combinations(order, 2))
    tau = sum(1 if a < b else -1 for a, b in pairs) / len(pairs)
    assert event_order(text, answer) == pytest.approx(max(0.0, tau))
    fixed = sum(a == b for a, b in zip(order, answer, strict=True)) / 5
    assert event_order(text, answer, measure="position") == pytest.approx(fixed)
    assert event_order(text, answer, measure="exact") == float(order == answer)


@pytest.mark.parametrize("answer", [None, "", "a", [], ["a"], ["a", "a"], 7, [["a"], "b"]])
def test_a_sample_without_an_order_is_a_failure(answer: Any) -> None:
    with pytest.raises(ValueError, match="sample"):
        event_order(think("a, b"), answer)


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError):
        temporal_iou(think("1 - 2"), TRUE, threshold=0)
    with pytest.raises(ConfigError):
        event_order(think("a, b"), ["a", "b"], measure="spearman")  # type: ignore[arg-type]
