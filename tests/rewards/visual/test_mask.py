"""Masks: IoU and pointing by hand, against pycocotools, and nothing for what is not a mask."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from images import seen, think
from pycocotools import mask as coco

from vlrl.errors import ConfigError
from vlrl.parsing.geometry import polygon_iou
from vlrl.parsing.strict_json import Unreadable
from vlrl.registry import resolve
from vlrl.rewards.visual.mask import mask_iou, point_in_mask
from vlrl.rewards.visual.mask_grids import grid_of_polygons, grid_of_runs

IMAGE = (seen((4, 6), (4, 6)),)
# Columns 1 to 3 of rows 0 and 1 of a 4×6 image: down the columns, 4 outside, then 2 inside and 2 outside.
RUNS = {"size": [4, 6], "counts": [4, 2, 2, 2, 2, 2, 10]}
POLYGON = [[1, 0], [4, 0], [4, 2], [1, 2]]
HALF = [[1, 0], [4, 0], [4, 1], [1, 1]]
BOTH_FORMS = [RUNS, POLYGON, [POLYGON], {"polygon": POLYGON}, json.dumps(RUNS), [[1, 0, 4, 0, 4, 2, 1, 2]]]


def compressed(grid: np.ndarray) -> dict[str, Any]:
    found = coco.encode(np.asfortranarray(grid.astype(np.uint8)))
    return {"size": list(found["size"]), "counts": found["counts"].decode()}


@pytest.mark.parametrize("answer", BOTH_FORMS, ids=str)
@pytest.mark.parametrize(("said", "value"), [(RUNS, 1), (POLYGON, 1), (HALF, 0.5), ([HALF, POLYGON], 1)])
def test_values_by_hand(answer: Any, said: Any, value: float) -> None:
    assert mask_iou(think(json.dumps(said)), answer, canvases=IMAGE) == value
    assert mask_iou(json.dumps(said), answer, canvases=IMAGE, part="whole") == value
    assert mask_iou(think(json.dumps(said)), answer, canvases=IMAGE, threshold=0.6) == (value > 0.6)


def test_the_whole_image_scores_the_share_that_is_covered() -> None:
    whole = think('{"size": [1, 1], "counts": [0, 1]}')
    assert mask_iou(whole, RUNS, canvases=IMAGE) == 6 / 24


def test_run_lengths_and_iou_agree_with_pycocotools() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        size = tuple(rng.integers(1, 40, 2))
        a, b = (rng.random(size) < share for share in rng.random(2))
        texts = [compressed(grid) for grid in (a, b)]
        assert all(np.array_equal(grid_of_runs(t), g) for t, g in zip(texts, (a, b), strict=True))
        if not b.any():
            continue
        image = (seen((int(size[0]), int(size[1]))),)
        ours = mask_iou(think(json.dumps(texts[0])), texts[1], canvases=image)
        encoded = [coco.encode(np.asfortranarray(grid.astype(np.uint8))) for grid in (a, b)]
        assert ours == pytest.approx(float(coco.iou(encoded[:1], encoded[1:], [0])[0, 0]))


def test_polygons_on_a_grid_agree_with_the_exact_area() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = ([(float(x), float(y)) for x, y in rng.random((5, 2)) * 100] for _ in range(2))
        grids = [grid_of_polygons([corners], (1000, 1000), (100.0, 100.0)) for corners in (a, b)]
        value = (grids[0] & grids[1]).sum() / (grids[0] | grids[1]).sum()
        assert value == pytest.approx(polygon_iou(a, b), abs=2e-3)


def test_frames_apply_to_polygons_and_points() -> None:
    image = (seen((480, 640), (476, 644), "per_1000"),)
    answer = [[160, 120], [320, 120], [320, 240], [160, 240]]
    said = think("[[250, 250], [500, 250], [500, 500], [250, 500]]")
    assert mask_iou(said, answer, canvases=image) == 1
    assert point_in_mask(think("(300, 300)"), answer, canvases=image) == 1
    assert point_in_mask(think("(300, 300)"), answer, canvases=image, frame="unit") == 0


def test_points() -> None:
    for said, value in (("[1, 0]", 1), ("(3.9, 1.9)", 1), ("[4, 0]", 0), ("[0.9, 0]", 0), ("[9, 9]", 0)):
        assert point_in_mask(think(said), RUNS, canvases=IMAGE) == value, said
    three = think("[[1, 0], [2, 1], [5, 3]]")
    assert point_in_mask(three, RUNS, canvases=IMAGE) == 0
    assert point_in_mask(three, RUNS, canvases=IMAGE, most=3) == pytest.approx(2 / 3)
    assert point_in_mask(three, RUNS, canvases=IMAGE, most=2) == 0
    corner = {"size": [4, 6], "counts": [23, 1]}
    assert point_in_mask(think("[6, 4]"), corner, canvases=IMAGE) == 1  # the far edge is in the last cell


HOSTILE = [
    "", "mask", "[]", "{}", "null", "[[]]", "[[[]]]", "[1, 0]", "[[1, 0], [4, 0]]", "[[1,0],[4,0],[NaN,2]]",
    '{"size": [4, 6]}', '{"counts": [4]}', '{"size": [4, 6], "counts": []}', '{"size": [4, 6], "counts": ""}',
    '{"size": [4, 6], "counts": [4, 2]}', '{"size": [4, 6], "counts": [25]}',
    '{"size": [4, 6], "counts": [4, -2, 22]}', '{"size": [4, 6], "counts": [0.5, 23.5]}',
    '{"size": [1e9, 1e9], "counts": [1e18]}', '{"size": [8192, 8192], "counts": [67108864]}',
    '{"size": [0, 6], "counts": []}', '{"size": [true, 6], "counts": [0, 6]}',
    '{"size": [4, 6], "counts": "o"}', '{"size": [4, 6], "counts": "ooooooooooo"}',
    '{"size": [4, 6], "counts": "\\u0000\\u00ff"}', '{"size": [4, 6], "counts": "é0"}',
    '{"size": "46", "counts": [24]}', '{"size": [4, 6], "counts": {"a": 1}}',
    '{"size": [4, 6], "counts": [4, 2, 18], "more": 1}', '{"size": [4, 6], "counts": [24]}',
    json.dumps({"size": [4, 6], "counts": [0] * 5000 + [24]}),
    json.dumps([POLYGON] * 33), json.dumps([[1, 0]] * 1000), "[" * 10_000, "[[1e308, 0], [0, 1e308], [1, 1]]",
    json.dumps(POLYGON) * 2, '{"polygon":' * 1400 + "[]" + "}" * 1400,
    f"It is {json.dumps(POLYGON)}", "9" * 19_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_mask_scores_nothing(text: str) -> None:
    for wrapped in (think(text), text):
        for part in ("answer", "whole"):
            assert mask_iou(wrapped, RUNS, canvases=IMAGE, part=part) == 0
            if text != "[1, 0]":  # a point it is
                assert point_in_mask(wrapped, RUNS, canvases=IMAGE, part=part) == 0


def test_huge_runs_are_refused_before_they_are_allocated() -> None:
    for counts in ([2**24], "o" * 6, "0" * 200_000):
        with pytest.raises(Unreadable):
            grid_of_runs({"size": [4, 6], "counts": counts})


@pytest.mark.parametrize("function", [mask_iou, point_in_mask])
@pytest.mark.parametrize(
    "answer",
    [None, "", "cat", [], {}, 7, [[1, 2], [3, 4]], {"size": [4, 6], "counts": [24]},
     {"size": [4, 6], "counts": [1]}, [[0, 0], [99, 0], [99, 99]], [[0.1, 0.1], [0.2, 0.1], [0.2, 0.2]]],
    ids=str,
)  # fmt: skip
def test_a_sample_without_a_mask_is_a_failure_not_a_zero(function: Any, answer: Any) -> None:
    for completion in ("", think(json.dumps(POLYGON))):
        with pytest.raises(ValueError, match="sample"):
            function(completion, answer, canvases=IMAGE)


def test_options_are_checked_and_names_registered() -> None:
    assert resolve("rewards", "mask_iou") is mask_iou
    assert resolve("rewards", "point_in_mask") is point_in_mask
    with pytest.raises(ConfigError, match="threshold"):
        mask_iou("", RUNS, canvases=IMAGE, threshold=2)
    with pytest.raises(ConfigError, match="most"):
        point_in_mask("", RUNS, canvases=IMAGE, most=0)
