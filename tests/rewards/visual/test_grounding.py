"""Rewards on one place: right in every frame, and nothing for what models try instead."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from images import seen, think

from vlrl.coordinates import FRAMES, Box, Canvas, CoordinateFrame, Point, convert, quantise
from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.visual.grounding import (
    box_diou,
    box_giou,
    box_iou,
    box_iou_threshold,
    point_distance,
    point_in_box,
    polygon_iou,
)

MEDIA = (seen(),)
TRUE = [100, 100, 300, 200]
ON_BOXES = [box_iou, box_iou_threshold, box_giou, box_diou]
ON_POINTS = [point_in_box, point_distance]
ROUND = [[100, 100], [300, 100], [300, 200], [100, 200]]
PERFECT = [
    *[(f, TRUE, TRUE) for f in ON_BOXES],
    *[(f, [200, 150], TRUE) for f in ON_POINTS],
    (polygon_iou, ROUND, ROUND),
]


@pytest.mark.parametrize(("function", "said", "answer"), PERFECT)
def test_the_right_place_scores_one_in_every_form_of_sample(function: Any, said: Any, answer: Any) -> None:
    tagged = f"<answer> {json.dumps(answer)} </answer>"  # VLM-R1's solutions
    for given_as in (answer, json.dumps(answer), tagged, np.array(answer, np.float32), tuple(answer)):
        assert function(think(json.dumps(said)), given_as, canvases=MEDIA) == pytest.approx(1)
    assert function(json.dumps(said), answer, canvases=MEDIA, part="whole") == pytest.approx(1)


@pytest.mark.parametrize(("function", "said", "answer"), PERFECT)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda said: "",
        lambda said: said,  # no tags
        lambda said: think(""),
        lambda said: think("I do not know"),
        lambda said: think(f"It is {said}"),
        lambda said: think(f"{said} or so"),
        lambda said: think(said) + think(said),
        lambda said: think(f"<answer>{said}</answer>"),
        lambda said: think(f"{said} {said}"),
        lambda said: think(f"[{said}, {said}]"),
        lambda said: think(f"[{', '.join([said] * 1000)}]"),
        lambda said: think(f"[[0, 0, 1, 1], {said}]"),
        lambda said: "x" * 1_000_000,
    ],
    ids=range(13),
)
def test_every_other_completion_scores_nothing(function: Any, said: Any, answer: Any, wrap: Any) -> None:
    assert function(wrap(json.dumps(said)), answer, canvases=MEDIA) == 0


@pytest.mark.parametrize("written", FRAMES)
@pytest.mark.parametrize("answered", FRAMES)
def test_one_place_in_every_pair_of_frames(written: CoordinateFrame, answered: CoordinateFrame) -> None:
    """The same box and point, said in one frame and answered in another, are the same box and point."""
    options = {"canvases": MEDIA, "frame": written, "answer_frame": answered}
    said = convert(Box(*TRUE), "original_pixels", written, MEDIA[0])
    true = convert(Box(*TRUE), "original_pixels", answered, MEDIA[0])
    text = json.dumps([said.x0, said.y0, said.x1, said.y1])
    answer = [true.x0, true.y0, true.x1, true.y1]
    assert box_iou(think(text), answer, **options) == pytest.approx(1)
    spot = convert(Point(200, 150), "original_pixels", written, MEDIA[0])
    assert point_distance(think(f"({spot.x:.9f},{spot.y:.9f})"), answer, **options) == pytest.approx(1)


def test_the_default_frame_is_the_one_the_family_was_taught() -> None:
    share = think("[250, 250, 500, 500]")
    assert box_iou(share, [160, 120, 320, 240], canvases=(seen(frame="per_1000"),)) == pytest.approx(1)
    assert box_iou(share, [160, 120, 320, 240], canvases=(seen(frame="resized_pixels"),)) < 0.2
    with pytest.raises(ConfigError, match=r"frame: the model's family was taught none.*per_1000"):
        box_iou(share, TRUE, canvases=(seen(frame=""),))
    with pytest.raises(ConfigError, match="answer_frame: 'pixels' is none"):
        box_iou(share, TRUE, canvases=MEDIA, answer_frame="pixels")


def test_a_canvas_is_all_that_is_needed_of_an_image() -> None:
    media = seen((480, 640), (476, 644), "resized_pixels")
    text = think("[161, 119, 322, 238]")
    assert Canvas.of(media) == Canvas((480, 640), (476, 644), "resized_pixels")
    assert box_iou(text, [160, 120, 320, 240], canvases=[Canvas.of(media)]) == pytest.approx(1)
    assert box_iou(text, [160, 120, 320, 240], canvases=[media]) == pytest.approx(1)


def test_media_index_says_which_image() -> None:
    both = (seen((100, 100), (56, 56), "unit"), seen((480, 640), (476, 644), "unit"))
    text = think("[0.25, 0.25, 0.5, 0.5]")
    assert box_iou(text, [160, 120, 320, 240], canvases=both, media_index=1) == pytest.approx(1)
    assert box_iou(text, [160, 120, 320, 240], canvases=both, media_index=-1) == pytest.approx(1)
    assert box_iou(text, [25, 25, 50, 50], canvases=both) == pytest.approx(1)
    for media, index in (((), 0), (both, 2), (both, -3)):
        with pytest.raises(ValueError, match="media_index"):
            box_iou(text, TRUE, canvases=media, media_index=index)


@pytest.mark.parametrize("function", [*ON_BOXES, *ON_POINTS, polygon_iou])
@pytest.mark.parametrize(
    "answer",
    [None, "", "cat", [], {}, [[]], [1, 2, 3], [5, 5, 1, 9], [0, 0, 5, 0], [0, 0, 0, 0, 0, 0], 7,
     "[1,2,NaN,4]", [0, 0, float("nan"), 4], [0, 0, 10**400, 4], [900, 100, 1000, 200],
     [[900, 0], [999, 0], [999, 9]],
     [[1, 2, 3, 4], [1, 2, 3, 4]]],
    ids=str,
)  # fmt: skip
def test_a_sample_without_a_usable_answer_is_a_failure_not_a_zero(function: Any, answer: Any) -> None:
    for completion in ("", think("[1, 2, 3, 4]")):
        with pytest.raises(ValueError, match="sample"):
            function(completion, answer, canvases=MEDIA)


def test_an_annotation_a_little_off_the_image_is_moved_to_its_edge() -> None:
    assert box_iou(think("[0, 0, 640, 480]"), [-0.4, 0, 640.4, 480], canvases=MEDIA) == pytest.approx(1)


def test_a_written_box_that_sticks_out_is_not_cut() -> None:
    assert box_iou(think("[0, 0, 1280, 480]"), [0, 0, 640, 480], canvases=MEDIA) == pytest.approx(0.5)


def test_values() -> None:
    half = think("[100, 100, 200, 200]")
    assert box_iou(half, TRUE, canvases=MEDIA) == pytest.approx(0.5)
    assert box_iou_threshold(half, TRUE, canvases=MEDIA) == 1
    assert box_iou_threshold(half, TRUE, canvases=MEDIA, threshold=0.51) == 0
    apart = think("[400, 100, 600, 200]")
    assert box_giou(apart, TRUE, canvases=MEDIA) == box_diou(apart, TRUE, canvases=MEDIA) == 0
    # The hull is 500 wide, 400 of it covered: GIoU −0.2. The centres are 300 apart.
    assert box_giou(apart, TRUE, canvases=MEDIA, floor=-1) == pytest.approx(0.4)
    diou = -(300**2) / (500**2 + 100**2)
    assert box_diou(apart, TRUE, canvases=MEDIA, floor=-1) == pytest.approx((diou + 1) / 2)
    assert box_giou(apart, TRUE, canvases=MEDIA, floor=-0.5) == pytest.approx(0.3 / 1.5)
    assert point_distance(think("[240, 150]"), TRUE, canvases=MEDIA) == pytest.approx(math.exp(-1))
    assert point_distance(think("[240, 150]"), [200, 150], canvases=MEDIA, sigma=0.1) == pytest.approx(
        math.exp(-0.5)
    )
    assert point_in_box(think("[300, 200]"), TRUE, canvases=MEDIA) == 1
    assert point_in_box(think("[300.001, 200]"), TRUE, canvases=MEDIA) == 0
    assert polygon_iou(think("[100, 100, 300, 100, 300, 200]"), ROUND, canvases=MEDIA) == pytest.approx(0.5)


@pytest.mark.parametrize(("function", "unused", "answer"), PERFECT)
def test_a_box_around_the_whole_image_wins_nothing_to_speak_of(
    function: Any, unused: Any, answer: Any
) -> None:
    for place in ("[0, 0, 640, 480]", "[320, 240]", "[[0, 0], [640, 0], [640, 480], [0, 480]]"):
        assert function(think(place), answer, canvases=MEDIA) < 0.08


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (box_iou_threshold, {"threshold": 0}),
        (box_iou_threshold, {"threshold": 1.1}),
        (box_giou, {"floor": 1}),
        (box_diou, {"floor": -1.1}),
        (point_distance, {"sigma": 0}),
        (point_distance, {"sigma": float("nan")}),
        (box_iou, {"part": "tail"}),
    ],
)
def test_an_option_out_of_range_is_refused(function: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        function(think("[1, 2, 3, 4]"), TRUE, canvases=MEDIA, **options)


# VLM-R1's reward of referring expressions, from its description: the first "[x, y, x, y]" of whole numbers in
# <answer>, grid · 14 pixels scaled to the image's own, then intersection over union.

SHARES = st.lists(st.integers(0, 46), min_size=2, max_size=2, unique=True).map(sorted)


def theirs(said: list[int], true: list[float], original: tuple[int, int], grid: tuple[int, int]) -> float:
    down, right = original[0] / (14 * grid[0]), original[1] / (14 * grid[1])
    a = [said[0] * right, said[1] * down, said[2] * right, said[3] * down]
    wide = min(a[2], true[2]) - max(a[0], true[0])
    high = min(a[3], true[3]) - max(a[1], true[1])
    # One row of pixels is shared or not, as rounding has it, which may be a hundredth of small boxes.
    assume(not (0 < wide < 2 or 0 < high < 2))
    shared = wide * high if wide > 1 and high > 1 else 0.0  # their corners are pixels: one shared is none
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (true[2] - true[0]) * (true[3] - true[1]) - shared)


@given(SHARES, SHARES, SHARES, SHARES)
def test_referring_expressions_are_scored_as_vlm_r1_does(
    xs: list[int], ys: list[int], true_xs: list[int], true_ys: list[int]
) -> None:
    media = (seen((480, 640), (14 * 34, 14 * 46), "resized_pixels"),)
    said = [xs[0] * 14, ys[0] * 10, xs[1] * 14, ys[1] * 10]
    true = [true_xs[0] * 13.9, true_ys[0] * 10.4, true_xs[1] * 13.9, true_ys[1] * 10.4]
    expected = theirs(said, true, (480, 640), (34, 46))
    label = json.dumps({"bbox_2d": said, "label": "the left one"})
    found = resolve("rewards", "vlm_r1_rec")(think(label), true, canvases=media)
    assert found == pytest.approx(expected, abs=0.01)


@given(st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), *[st.floats(1, 200)] * 4))
def test_rounding_to_the_model_s_grain_costs_little(box: Box) -> None:
    media = (seen((480, 640), (476, 644), "resized_pixels"),)
    said = quantise(convert(box, "original_pixels", "resized_pixels", media[0]), "resized_pixels")
    text = think(f"[{said.x0:.0f}, {said.y0:.0f}, {said.x1:.0f}, {said.y1:.0f}]")
    answer = [box.x0, box.y0, box.x1, box.y1]
    least = min(box.x1 - box.x0, box.y1 - box.y0)
    assert box_iou(text, answer, canvases=media) >= max(0.0, 1 - 4 / least)
