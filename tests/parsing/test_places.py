"""Boxes, points and polygons read from text: every form, and nothing that only looks like one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.coordinates import Box, Point
from vlrl.parsing.places import (
    MAX_CORNERS,
    MAX_PLACES,
    boxes_of,
    read_boxes,
    read_point,
    read_polygon,
    try_read,
)
from vlrl.parsing.strict_json import Unreadable
from vlrl.rewards.visual.video import temporal_iou

ONE = Box(1, 2, 30.5, 40)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("[1, 2, 30.5, 40]", [None]),
        ("[1,2,30.5,40.0]", [None]),
        ("[[1, 2, 30.5, 40]]", [None]),
        ("[[1, 2, 30.5, 40], [1, 2, 30.5, 40]]", [None, None]),
        ("(1,2),(30.5,40)", [None]),
        (" ( 1 , 2 ) , ( 30.5 , 40 ) ", [None]),
        ("(1,2),(30.5,40), (1,2),(30.5,40)", [None, None]),
        ("<|box_start|>(1,2),(30.5,40)<|box_end|>", [None]),
        ("<|object_ref_start|>a cat<|object_ref_end|><|box_start|>(1,2),(30.5,40)<|box_end|>", ["a cat"]),
        ("<ref>cat</ref><box>[[1, 2, 30.5, 40]]</box>\n<box>[[1, 2, 30.5, 40]]</box>", ["cat", None]),
        ('{"bbox_2d": [1, 2, 30.5, 40], "label": "cat"}', ["cat"]),
        (
            '[{"bbox": [1, 2, 30.5, 40], "label": "cat", "score": 0.9}, {"box": [1, 2, 30.5, 40]}]',
            ["cat", None],
        ),
        ('```json\n[{"bbox_2d": [1, 2, 30.5, 40], "label": "cat"}]\n```', ["cat"]),
        ("```\n[1, 2, 30.5, 40]\n```", [None]),
        ("[]", []),
        ("None", []),
        ("```json\n[]\n```", []),
    ],
)
def test_boxes_in_every_form(text: str, labels: list[str | None]) -> None:
    found = read_boxes(text)
    assert [item.label for item in found] == labels
    assert all(item.box == ONE for item in found)


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("[5, 6.5]", (5, 6.5)),
        ("(5, 6.5)", (5, 6.5)),
        ("<point>5 6.5</point>", (5, 6.5)),
        ("<|box_start|>(5,6.5)<|box_end|>", (5, 6.5)),
        ('{"point_2d": [5, 6.5], "label": "the button"}', (5, 6.5)),
        ("```json\n[5, 6.5]\n```", (5, 6.5)),
        ("[-3, 1e2]", (-3, 100)),
    ],
)
def test_a_point_in_every_form(text: str, point: tuple[float, float]) -> None:
    assert read_point(text) == Point(*point)


@pytest.mark.parametrize(
    "text", ["[[0, 0], [9, 0], [9, 9]]", "[0, 0, 9, 0, 9, 9]", '{"polygon": [[0, 0], [9, 0], [9, 9]]}']
)
def test_a_polygon_in_every_form(text: str) -> None:
    assert read_polygon(text) == (Point(0, 0), Point(9, 0), Point(9, 9))


NO_BOX = [
    "",
    "cat",
    "the box is [1, 2, 3, 4]",
    "[1, 2, 3, 4] or so",
    "[1, 2, 3, 4] [1, 2, 3, 4]",
    "[1, 2, 3]",
    "[1, 2, 3, 4, 5]",
    "[3, 2, 1, 4]",  # x0 > x1
    "[1, 4, 3, 2]",
    '["1", "2", "3", "4"]',
    "[true, 2, 3, 4]",
    "[NaN, 2, 3, 4]",
    "[1, 2, Infinity, 4]",
    "[1, 2, 1e400, 4]",
    "[1, 2, 1e9, 4]",
    "[" + "9" * 5000 + ", 2, 3, 4]",
    "[1+1, 2, 3, 4]",
    "[0x1, 2, 3, 4]",
    "[1, 2, 3, 4,]",
    "[１, 2, 3, 4]",  # a digit of full width
    "(1,2),(3,4",
    "(1,2)",
    "<|box_start|>(1,2),(3,4)",
    "<|box_start|>(1,2),(3,4)<|box_end|>cat",
    "{}",
    "null",
    "[[]]",
    "[{}]",
    '{"bbox_2d": [1, 2, 3, 4], "bbox": [1, 2, 3, 4]}',
    '{"bbox_2d": [1, 2, 3, 4], "bbox_2d": [5, 6, 7, 8]}',
    '{"bbox_2d": [1, 2, 3, 4], "label": 7}',
    '{"bbox_2d": [[1, 2, 3, 4]]}',
    "{'bbox_2d': [1, 2, 3, 4]}",
    '[{"bbox_2d": [1, 2, 3, 4]}, {"label": "cat"}]',
    "```json\n[1, 2, 3, 4]",
    "```json\n[1, 2, 3, 4]\n``````json\n[1, 2, 3, 4]\n```",
    "``````",
    "__import__('os').getcwd()",
    "[" * 10_000,
    "[" * 500 + "]" * 500,
    '{"a":' * 900 + "1" + "}" * 900,
    json.dumps([[1, 2, 3, 4]] * (MAX_PLACES + 1)),
    "(1,2),(3,4)" * (MAX_PLACES + 1),
]


@pytest.mark.parametrize("text", NO_BOX, ids=lambda text: text[:30])
@pytest.mark.parametrize("reader", [read_boxes, read_point, read_polygon])
def test_what_only_looks_like_a_place_is_none(reader: Callable[[str], Any], text: str) -> None:
    if (reader, text) in ((read_point, "(1,2)"), (read_polygon, "[3, 2, 1, 4]")):
        return  # is one
    with pytest.raises(Unreadable):
        reader(text)


def test_a_polygon_has_three_corners_and_not_too_many() -> None:
    for count in (0, 1, 2, MAX_CORNERS + 1):
        assert try_read(read_polygon, json.dumps([[n, n * n] for n in range(count)])) is None
    assert len(read_polygon(json.dumps([[n, n * n] for n in range(MAX_CORNERS)]))) == MAX_CORNERS


@given(st.lists(st.tuples(*[st.integers(-(10**6), 10**6)] * 4), max_size=5))
def test_boxes_are_read_back(numbers: list[tuple[int, int, int, int]]) -> None:
    ordered = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in numbers]
    assert [item.box for item in boxes_of(ordered)] == [Box(*four) for four in ordered]
    assert read_boxes(json.dumps(ordered)) == boxes_of(ordered)


@given(st.text(st.sampled_from("[](){}<>|,.:\"'-0123 9eE`\njsonboxpitlabe_2d"), max_size=80))
def test_no_text_raises_anything_else(text: str) -> None:
    for reader in (read_boxes, read_point, read_polygon):
        try_read(reader, text)
    assert 0 <= temporal_iou(text, [1, 2], part="whole") <= 1


@pytest.mark.timeout(20)  # quadratic time would be far more
@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000,
        "(1,2),(3,4) " * 900 + "x",
        "<point>" + " " * 19_000 + "x",
        "<point>1" + " " * 19_000 + "x",
        "<ref>" * 4000,
        "<ref>" + "a" * 19_000,
        "<|object_ref_start|>" * 1000,
        "`" * 20_000,
        "```json" + " " * 19_000 + "```x```",
        "[" + " " * 19_000,
        "[" * 990 + "1" + "]" * 990,
        "1 " + " " * 19_000 + "- 2",
        "0:" * 9_000,
        "from " * 4_000,
        "1-" * 9_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_text_takes_no_longer_than_its_length(text: str) -> None:
    for reader in (read_boxes, read_point, read_polygon):
        assert try_read(reader, text) is None
    assert temporal_iou(text, [1, 2], part="whole") == 0
