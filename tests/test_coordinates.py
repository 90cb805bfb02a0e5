"""Coordinates: the same place in every frame, there and back."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.coordinates import (
    FAMILY_FRAMES,
    FRAMES,
    Box,
    CoordinateFrame,
    Point,
    convert,
    frame_extent,
    quantise,
)
from vlrl.errors import DataError
from vlrl.registry import available
from vlrl.types import Media

PAIRS = list(itertools.product(FRAMES, FRAMES))
SIDE = st.integers(1, 20_000)
SHARE = st.floats(0, 1)


def media(original: tuple[int, int] = (480, 640), size: tuple[int, int] = (476, 644)) -> Media:
    """An image of (height, width), seen at another, without its pixels in memory."""
    frames = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (1, *size, 3))
    return Media("image", "", frames, original, (1, 1, 1), 1)


MEDIA = st.builds(lambda a, b, c, d: media((a, b), (c, d)), SIDE, SIDE, SIDE, SIDE)


def grain(frame: CoordinateFrame) -> float:
    return 0.001 if frame == "unit" else 1.0


@pytest.mark.parametrize(
    ("frame", "x", "y"),
    [
        ("original_pixels", 320, 120),
        ("resized_pixels", 322, 119),
        ("per_1000", 500, 250),
        ("per_999", 499.5, 249.75),
        ("unit", 0.5, 0.25),
    ],
)
def test_one_place_in_every_frame(frame: CoordinateFrame, x: float, y: float) -> None:
    for source, (sx, sy) in (("original_pixels", (320, 120)), ("unit", (0.5, 0.25))):
        found = convert(Point(sx, sy), source, frame, media())  # type: ignore[arg-type]
        assert (found.x, found.y) == pytest.approx((x, y))


@pytest.mark.parametrize(("source", "target"), PAIRS)
@given(record=MEDIA, shares=st.tuples(SHARE, SHARE))
def test_there_and_back_is_within_the_grain(
    source: CoordinateFrame, target: CoordinateFrame, record: Media, shares: tuple[float, float]
) -> None:
    (width, height), (wide, high) = frame_extent(source, record), frame_extent(target, record)
    start = Point(shares[0] * width, shares[1] * height)
    there = quantise(convert(start, source, target, record), target)
    back = convert(there, target, source, record)
    half = grain(target) / 2 * (1 + 1e-9)
    assert abs(back.x - start.x) <= half * width / wide + 1e-9 * width
    assert abs(back.y - start.y) <= half * height / high + 1e-9 * height


@pytest.mark.parametrize(("source", "target"), PAIRS)
@given(record=MEDIA, xs=st.tuples(SHARE, SHARE), ys=st.tuples(SHARE, SHARE))
def test_boxes_keep_their_order_and_stay_inside(
    source: CoordinateFrame,
    target: CoordinateFrame,
    record: Media,
    xs: tuple[float, float],
    ys: tuple[float, float],
) -> None:
    width, height = frame_extent(source, record)
    (x0, x1), (y0, y1) = sorted(xs), sorted(ys)
    box = Box(x0 * width, y0 * height, x1 * width, y1 * height)
    found = quantise(convert(box, source, target, record), target)  # Box refuses a wrong order itself
    wide, high = frame_extent(target, record)
    assert 0 <= found.x0 <= found.x1 <= wide
    assert 0 <= found.y0 <= found.y1 <= high


@pytest.mark.parametrize(("source", "target"), PAIRS)
@given(record=MEDIA)
def test_edges_map_to_edges(source: CoordinateFrame, target: CoordinateFrame, record: Media) -> None:
    found = convert(Box(0, 0, *frame_extent(source, record)), source, target, record)
    wide, high = frame_extent(target, record)
    assert (found.x0, found.y0) == (0, 0)
    assert (found.x1, found.y1) == pytest.approx((wide, high), rel=1e-12)
    assert found.x1 <= wide
    assert found.y1 <= high


@given(record=MEDIA, shares=st.tuples(SHARE, SHARE))
def test_original_pixels_go_through_the_records_transform(record: Media, shares: tuple[float, float]) -> None:
    height, width = record.original_size
    x, y = shares[0] * width, shares[1] * height
    found = convert(Point(x, y), "original_pixels", "resized_pixels", record)
    assert (found.x, found.y) == (record.to_model(x, 0)[0], record.to_model(0, y)[1])


@pytest.mark.parametrize("frame", FRAMES)
def test_outside_is_refused_or_moved_to_the_edge(frame: CoordinateFrame) -> None:
    record = media()
    wide, high = frame_extent(frame, record)
    with pytest.raises(DataError, match=rf"x=-1 lies outside the frame {frame} .* 0 to {wide:g}"):
        convert(Point(-1, 0), frame, "unit", record)
    with pytest.raises(DataError, match="y="):
        convert(Box(0, 0, wide, high * 1.01), frame, "unit", record)
    assert convert(Box(-1, -1, 2 * wide, 2 * high), frame, "unit", record, clamp=True) == Box(0, 0, 1, 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_even_when_clamping(value: float) -> None:
    with pytest.raises(DataError, match="finite"):
        convert(Point(value, 0), "unit", "per_1000", media(), clamp=True)
    with pytest.raises(DataError, match="finite"):
        Box(0, 0, value, 1)


def test_swapped_corners_are_refused() -> None:
    with pytest.raises(DataError, match="x0 ≤ x1"):
        Box(5, 0, 4, 1)


@pytest.mark.parametrize(("value", "whole"), [(0.5, 1), (1.5, 2), (2.5, 3), (2.49, 2), (999.5, 1000)])
def test_halves_go_up(value: float, whole: int) -> None:
    assert quantise(Point(value, 0), "per_1000") == Point(whole, 0)


def test_unit_is_written_in_thousandths() -> None:
    assert quantise(Point(1 / 3, 0.9996), "unit") == Point(0.333, 1.0)


def test_every_frame_in_the_table_is_one_of_the_frames() -> None:
    assert set(FAMILY_FRAMES.values()) <= set(FRAMES)
    assert {"qwen2_vl", "qwen2_5_vl"} <= FAMILY_FRAMES.keys() & available("processors").keys()
