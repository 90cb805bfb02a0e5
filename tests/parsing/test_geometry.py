"""Overlaps: closed forms, and what must hold of any two shapes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.parsing.geometry import (
    BoxTuple,
    PointTuple,
    centre,
    contains,
    diou,
    distance_to_box,
    giou,
    iou,
    iou_matrix,
    polygon_iou,
)
from vlrl.rewards.visual.matching import greedy_match, hungarian_match

SQUARE = (0.0, 0.0, 10.0, 10.0)
NUMBER = st.integers(-1000, 1000).map(lambda n: n / 8)
SIDE = st.integers(1, 1000).map(lambda n: n / 8)
BOXES = st.builds(lambda x, y, w, h: (x, y, x + w, y + h), NUMBER, NUMBER, SIDE, SIDE)
FLAT = st.builds(lambda x, y, w: (x, y, x + w, y), NUMBER, NUMBER, SIDE)
POINTS = st.tuples(NUMBER, NUMBER)


@pytest.mark.parametrize(
    ("other", "overlap", "generalised", "distance"),
    [
        (SQUARE, 1, 1, 1),
        ((5, 0, 15, 10), 1 / 3, 1 / 3, 1 / 3 - 25 / 325),
        ((5, 5, 15, 15), 25 / 175, 25 / 175 - 50 / 225, 25 / 175 - 50 / 450),
        ((10, 0, 20, 10), 0, 0, -100 / 500),  # side by side
        ((20, 0, 30, 10), 0, -1 / 3, -400 / 1000),
        ((0, 0, 5, 5), 1 / 4, 1 / 4, 1 / 4 - 12.5 / 200),
        ((0, 0, 100, 100), 1 / 100, 1 / 100, 1 / 100 - 2 * 45**2 / 20000),
        ((5, 5, 5, 5), 0, 0, 0),  # no area, in the middle
    ],
)
def test_closed_forms(other: BoxTuple, overlap: float, generalised: float, distance: float) -> None:
    assert iou(SQUARE, other) == pytest.approx(overlap)
    assert giou(SQUARE, other) == pytest.approx(generalised)
    assert diou(SQUARE, other) == pytest.approx(distance)
    assert iou_matrix([SQUARE], [other])[0, 0] == pytest.approx(overlap)


def test_a_box_without_area_overlaps_nothing_not_even_itself() -> None:
    for flat in ((3, 3, 3, 3), (0, 5, 10, 5)):
        assert iou(flat, flat) == iou(flat, SQUARE) == 0
        assert giou(flat, flat) == -1
        assert polygon_iou(corners(flat), corners(SQUARE)) == 0


@given(BOXES, BOXES)
def test_what_holds_of_any_two_boxes(a: BoxTuple, b: BoxTuple) -> None:
    for measure, low in ((iou, 0.0), (giou, -1.0), (diou, -1.0)):
        assert low <= measure(a, b) <= 1 + 1e-12
        assert measure(a, b) == pytest.approx(measure(b, a))
        assert measure(a, a) == pytest.approx(1)
        assert measure(scaled(a, 3, -7), scaled(b, 3, -7)) == pytest.approx(measure(a, b), abs=1e-9)
    assert giou(a, b) <= iou(a, b) + 1e-12
    assert diou(a, b) <= iou(a, b) + 1e-12
    assert iou_matrix([a, b], [b])[:, 0] == pytest.approx([iou(a, b), 1])


@given(BOXES, POINTS)
def test_a_point_is_inside_where_its_distance_is_none(box: BoxTuple, point: PointTuple) -> None:
    assert contains(box, point) == (distance_to_box(box, point) == 0)
    assert contains(box, centre(box))
    assert distance_to_box(box, point) <= math.dist(centre(box), point)
    assert contains(box, box[:2]) and contains(box, box[2:])  # the edge belongs to it


# Polygons.


def corners(box: BoxTuple) -> list[PointTuple]:
    x0, y0, x1, y1 = box
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def scaled(box: BoxTuple, factor: float, shift: float) -> BoxTuple:
    x0, y0, x1, y1 = (value * factor + shift for value in box)
    return x0, y0, x1, y1


def turned(shape: list[PointTuple], angle: float) -> list[PointTuple]:
    c, s = math.cos(angle), math.sin(angle)
    return [(c * x - s * y, s * x + c * y) for x, y in shape]


@given(BOXES, BOXES, st.floats(0, 6.3), st.integers(0, 3), st.booleans())
def test_boxes_are_polygons_however_turned_and_wherever_begun(
    a: BoxTuple, b: BoxTuple, angle: float, start: int, backwards: bool
) -> None:
    first, second = turned(corners(a), angle), turned(corners(b), angle)
    second = second[start:] + second[:start]
    if backwards:
        second.reverse()
    assert polygon_iou(first, second) == pytest.approx(iou(a, b), abs=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # A triangle is half of its square.
        ([(0, 0), (10, 0), (0, 10)], corners(SQUARE), 0.5),
        # An L (three quarters) and the quarter that it lacks share nothing.
        ([(0, 0), (10, 0), (10, 5), (5, 5), (5, 10), (0, 10)], corners((5, 5, 10, 10)), 0),
        ([(0, 0), (10, 0), (10, 5), (5, 5), (5, 10), (0, 10)], corners(SQUARE), 0.75),
        # Two triangles of 50 on one side share a third of 25.
        ([(0, 0), (10, 0), (0, 10)], [(0, 0), (10, 0), (10, 10)], 25 / 75),
        # A bow tie crosses itself: two triangles of 25 each.
        ([(0, 0), (10, 10), (10, 0), (0, 10)], corners(SQUARE), 0.5),
        # A square walked round twice is hollow by the even-odd rule.
        (corners(SQUARE) * 2, corners(SQUARE), 0),
        # A diamond in a square.
        ([(5, 0), (10, 5), (5, 10), (0, 5)], corners(SQUARE), 0.5),
    ],
)
def test_polygons_of_known_area(a: list[PointTuple], b: list[PointTuple], expected: float) -> None:
    assert polygon_iou(a, b) == pytest.approx(expected)
    assert polygon_iou(b, a) == pytest.approx(expected)


@given(st.lists(POINTS, min_size=3, max_size=12), st.lists(POINTS, min_size=3, max_size=12))
def test_what_holds_of_any_two_polygons(a: list[PointTuple], b: list[PointTuple]) -> None:
    found = polygon_iou(a, b)
    assert 0 <= found <= 1
    assert found == pytest.approx(polygon_iou(b, a), abs=1e-6)
    assert polygon_iou(a, a) == pytest.approx(1) or polygon_iou(a, a) == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=3, max_size=8))
def test_a_polygon_against_points_thrown_at_it(shape: list[PointTuple]) -> None:
    """The shared share of a square of 30 equals the share of a fine grid's points that are inside."""
    square = corners((0, 0, 30, 30))
    grid = (np.arange(120) + 0.5) / 4
    x, y = np.meshgrid(grid, grid)
    inside = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(shape, shape[1:] + shape[:1], strict=True):
        if y0 != y1:
            inside ^= ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    assert polygon_iou(shape, square) == pytest.approx(inside.mean(), abs=0.02)


# Matching.

TABLES = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(
            st.sampled_from([0, 0.2, 0.49, 0.5, 0.6, 0.75, 0.9, 1.0]), min_size=shape[1], max_size=shape[1]
        ),
        min_size=shape[0],
        max_size=shape[0],
    ).map(lambda rows: np.array(rows, np.float64))
)


def best_by_trying(table: np.ndarray, threshold: float) -> tuple[int, float]:
    """(most pairs, greatest sum of so many) over every one-to-one matching there is."""
    wide = table if table.shape[0] <= table.shape[1] else table.T
    found = (0, 0.0)
    for columns in itertools.permutations(range(wide.shape[1]), wide.shape[0]):
        values = [wide[row, column] for row, column in enumerate(columns) if wide[row, column] >= threshold]
        found = max(found, (len(values), sum(values)))
    return found


@given(TABLES)
def test_hungarian_is_the_best_of_all_matchings_and_greedy_is_one(table: np.ndarray) -> None:
    hungarian, greedy = hungarian_match(table, 0.5), greedy_match(table, 0.5)
    count, total = best_by_trying(table, 0.5)
    assert len(hungarian) == count >= len(greedy)
    assert sum(table[pair] for pair in hungarian) == pytest.approx(total)
    for pairs in (hungarian, greedy):
        assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
        assert all(table[pair] >= 0.5 for pair in pairs)
    if table.max() >= 0.5:
        assert table[greedy[0]] == table.max()


def test_greedy_gives_away_what_hungarian_keeps() -> None:
    table = np.array([[0.9, 0.8], [0.8, 0.1]])
    assert greedy_match(table, 0.5) == [(0, 0)]
    assert hungarian_match(table, 0.5) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("match", [greedy_match, hungarian_match])
def test_nothing_matches_nothing(match: object) -> None:
    for shape in ((0, 3), (3, 0), (0, 0), (3, 3)):
        assert match(np.zeros(shape), 0.5) == []  # type: ignore[operator]
    assert match(np.zeros((2, 2)), 1e-9) == []  # type: ignore[operator]
