"""Rewards on all boxes of an image: closed forms, peers' definitions, and what must not win."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from images import seen, think

from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.visual.detection import (
    ROLL_THRESHOLDS,
    detection_completeness,
    detection_f1,
    od_ap,
    od_ap50,
    od_length,
    vlm_r1_weighted_sum,
)

MEDIA = (seen(),)
ALL = [detection_f1, vlm_r1_weighted_sum, detection_completeness, od_ap, od_ap50, od_length]
WITH_STRICT = ALL[1:]
CATS = [{"bbox_2d": [10, 10, 60, 60], "label": "cat"}, {"bbox_2d": [200, 100, 300, 300], "label": "dog"}]


def score(function: Any, said: Any, true: Any, **options: Any) -> float:
    return float(function(think(json.dumps(said)), true, canvases=MEDIA, **options))


@pytest.mark.parametrize("function", ALL)
def test_the_right_boxes_score_one_in_any_order_and_form(function: Any) -> None:
    assert score(function, CATS, CATS) == pytest.approx(1)
    assert score(function, CATS[::-1], CATS) == pytest.approx(1)
    assert score(function, CATS, json.dumps(CATS)) == pytest.approx(1)
    assert score(function, [[1, 2, 3, 4]], [[1, 2, 3, 4]]) == pytest.approx(1)
    assert score(function, CATS, [c["bbox_2d"] for c in CATS]) == pytest.approx(1)  # the answer has no labels
    upper = [{**c, "label": c["label"].upper() + " "} for c in CATS]
    assert score(function, upper, CATS) == pytest.approx(1)
    fenced = f"```json\n{json.dumps(CATS)}\n```"
    assert function(think(fenced), CATS, canvases=MEDIA) == pytest.approx(1)
    assert function(fenced, CATS, canvases=MEDIA, part="whole") == pytest.approx(1)


@pytest.mark.parametrize("function", ALL)
def test_nothing_is_right_only_where_nothing_is(function: Any) -> None:
    for nothing in ([], "None", "[]"):
        assert score(function, [], nothing) == function(think("None"), nothing, canvases=MEDIA) == 1
        assert score(function, CATS, nothing) == 0
        assert (
            function("", nothing, canvases=MEDIA)
            == function(think("none of it"), nothing, canvases=MEDIA)
            == 0
        )
    assert score(function, [], CATS) == 0


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    "completion",
    [
        "",
        json.dumps(CATS),
        think(""),
        think("two cats"),
        think(f"Here: {json.dumps(CATS)}"),
        think(json.dumps(CATS)) + think(json.dumps(CATS)),
        think(json.dumps(CATS) * 2),
        think(json.dumps([*CATS, {"bbox_2d": [9, 9, 3, 3], "label": "cat"}])),
        think(json.dumps([*CATS, {"label": "cat"}])),
        think(json.dumps(CATS)[:-1]),
        think("[" * 5000),
        think(json.dumps([{"bbox_2d": [300, 310, 320, 330], "label": "cat"}])),
    ],
    ids=range(12),
)
def test_broken_and_wrong_completions_score_nothing(function: Any, completion: str) -> None:
    assert function(completion, CATS, canvases=MEDIA) == 0


@pytest.mark.parametrize("function", ALL)
def test_copies_and_boxes_everywhere_do_not_win(function: Any) -> None:
    copies = score(function, CATS * 10, CATS)
    assert copies <= 0.2
    assert score(function, CATS + CATS, CATS) < score(function, CATS, CATS) - 0.3
    grid = [
        {"bbox_2d": [x, y, x + w, y + h], "label": label}
        for label in ("cat", "dog")
        for w in (50, 100)
        for h in (50, 200)
        for x in range(10, 400, 50)
        for y in range(10, 250, 30)
    ]
    assert any(box["bbox_2d"] == [10, 10, 60, 60] for box in grid)
    assert score(function, grid, CATS) < 0.02
    first = [*CATS, *grid]  # the right ones in front
    assert score(function, first, CATS) < 0.05
    assert score(function, [*CATS, {"bbox_2d": [0, 0, 9, 9], "label": "unicorn"}], CATS) < 0.9
    everything = [{"bbox_2d": [0, 0, 640, 480], "label": name} for name in ("cat", "dog")]
    assert score(function, everything, CATS) == 0


@pytest.mark.parametrize("function", ALL)
def test_labels_count_unless_told_otherwise(function: Any) -> None:
    swapped = [{**c, "label": {"cat": "dog", "dog": "cat"}[c["label"]]} for c in CATS]
    assert score(function, swapped, CATS) == 0
    assert score(function, swapped, CATS, match_labels=False) == pytest.approx(1)
    unnamed = [{"bbox_2d": c["bbox_2d"]} for c in CATS]
    assert score(function, unnamed, CATS) == 0


def test_values() -> None:
    one = CATS[:1]
    assert score(detection_f1, one, CATS) == pytest.approx(2 / 3)
    assert score(detection_f1, [*CATS, {"bbox_2d": [0, 0, 5, 5], "label": "cat"}], CATS) == pytest.approx(0.8)
    assert score(vlm_r1_weighted_sum, one, CATS) == pytest.approx(0.7 * 0.5 + 0.3 * 0.5)
    assert score(vlm_r1_weighted_sum, one, CATS, strict=False) == pytest.approx(0.7 * 0.5 + 0.3 * 0.75)
    assert score(vlm_r1_weighted_sum, one, CATS, label_weight=1) == pytest.approx((0.35 + 0.5 + 0.15) / 2)
    assert score(detection_completeness, one, CATS) == pytest.approx(0.5)
    assert score(od_ap, one, CATS) == pytest.approx(0.5)
    assert score(od_ap, one * 2, CATS[:1]) == pytest.approx(0.5)
    assert score(od_length, one * 2, CATS[:1]) == pytest.approx(0.25)
    half = [{"bbox_2d": [10, 10, 60, 47], "label": "cat"}]  # IoU 0.74
    assert score(od_ap50, half, one) == pytest.approx(1)
    assert score(od_ap, half, one) == pytest.approx(0.5)  # of 0.5, 0.55, … 0.95 five are at most 0.74
    assert score(detection_completeness, half, one) == pytest.approx(5 / 11)
    assert score(detection_completeness, half, one, position_weight=1) == pytest.approx(5 / 11 * 0.74)


def test_hungarian_keeps_what_greedy_gives_away() -> None:
    said = [[0, 0, 100, 110], [0, 0, 100, 60]]
    true = [[0, 0, 100, 105], [0, 0, 100, 200]]
    # IoU: [0.95, 0.55], [0.57, 0.30]
    assert score(detection_f1, said, true) == 0.5
    assert score(detection_f1, said, true, matching="hungarian") == 1


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    "answer",
    [None, "", "cats", 7, {}, [{"label": "cat"}], [[1, 2, 3]], [[3, 3, 1, 1]], [[0, 0, 0, 5]],
     [[0, 0, 5000, 5]], [CATS[0], {"bbox_2d": [1, 2, 3, 4]}]],
    ids=str,
)  # fmt: skip
def test_a_sample_without_usable_boxes_is_a_failure(function: Any, answer: Any) -> None:
    for completion in ("", think(json.dumps(CATS))):
        with pytest.raises(ValueError, match="answer"):
            function(completion, answer, canvases=MEDIA)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (detection_f1, {"matching": "best"}),
        (detection_f1, {"iou_threshold": 0}),
        (vlm_r1_weighted_sum, {"iou_threshold": 2}),
        (vlm_r1_weighted_sum, {"position_weight": -1}),
        (vlm_r1_weighted_sum, {"position_weight": 0, "completeness_weight": 0}),
        (detection_completeness, {"iou_thresholds": []}),
        (detection_completeness, {"position_weight": 1.5}),
        (od_ap, {"iou_thresholds": [0.5, 0.0]}),
        (od_length, {"iou_thresholds": [50]}),
        (od_ap50, {"frame": "pixels"}),
    ],
)
def test_an_option_out_of_range_is_refused(function: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        score(function, CATS, CATS, **options)


def test_average_precision_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for strict in (True, False):
        score(od_ap, CATS, CATS, strict=strict)
    print("the caller's own line")
    assert capfd.readouterr() == ("the caller's own line\n", "")


def test_a_thousand_boxes_take_a_moment() -> None:
    many = [[n % 600, n % 440, n % 600 + 9, n % 440 + 9] for n in range(700)]
    text = think(json.dumps(many, separators=(",", ":")))
    for function in ALL:
        assert function(text, many[:600], canvases=MEDIA) > 0.4


# Peers' definitions, written down from their descriptions; on random images of few places, so that there
# are copies, misses, wrong labels and overlaps of every size.

PLACES = [[x, y, x + 100, y + h] for x in (0, 8, 20, 60, 300) for y in (0, 30) for h in (80, 100)]
ITEMS = st.builds(
    lambda place, label: {"bbox_2d": place, "label": label},
    st.sampled_from(PLACES),
    st.sampled_from(["a", "b"]),
)
SAID, TRUE = st.lists(ITEMS, max_size=6), st.lists(ITEMS, max_size=4)


def overlap(a: list[int], b: list[int]) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0, wide) * max(0, high)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def paired(said: list[Any], true: list[Any], threshold: float) -> list[tuple[int, int, float]]:
    """Both peers: the pair of greatest IoU, whatever its labels, again and again down to the threshold."""
    left, right, pairs = set(range(len(said))), set(range(len(true))), []
    while left and right:
        value, i, j = max(
            (overlap(said[i]["bbox_2d"], true[j]["bbox_2d"]), -i, -j) for i in left for j in right
        )
        if value < threshold:
            break
        left.remove(-i)
        right.remove(-j)
        pairs.append((-i, -j, value if said[-i]["label"] == true[-j]["label"] else 0.0))
    return pairs


def weighted(said: list[Any], true: list[Any], threshold: float, position: float, rest: float) -> float:
    if not true or not said:
        return float(not true and not said)
    pairs = paired(said, true, threshold)
    missed, alarms = 1 - len(pairs) / len(true), 1 - len(pairs) / len(said)
    mean = sum(value for _, _, value in pairs) / len(true)
    return position * mean + rest * (1 - (missed + alarms) / 2)


@given(SAID, TRUE)
def test_the_weighted_sum_is_vlm_r1_s(said: list[Any], true: list[Any]) -> None:
    found = score(vlm_r1_weighted_sum, said, true, strict=False)
    assert found == pytest.approx(weighted(said, true, 0.5, 0.7, 0.3))


@given(SAID, TRUE, st.sampled_from([0.0, 0.5, 1.0]))
def test_completeness_is_roll_s(said: list[Any], true: list[Any], position: float) -> None:
    expected = [weighted(said, true, t, position, 1 - position) for t in ROLL_THRESHOLDS]
    found = score(detection_completeness, said, true, strict=False, position_weight=position)
    assert found == pytest.approx(np.mean(expected))


@given(st.permutations(PLACES[::2]), st.lists(st.sampled_from([0, 1, 2, 3]), min_size=4, max_size=4))
def test_strict_is_the_same_where_every_box_is_there_once(places: list[Any], shifts: list[int]) -> None:
    """The answer has as many boxes as there are, each near its own and rightly named: no hole to close."""
    true = [[160 * n, place[1], 160 * n + 100, place[3]] for n, place in enumerate(places[:4])]
    said = [[x0 + 9 * s, y0, x1 + 9 * s, y1] for (x0, y0, x1, y1), s in zip(true, shifts, strict=True)]
    named = [
        [{"bbox_2d": box, "label": "ab"[n % 2]} for n, box in enumerate(boxes)] for boxes in (said, true)
    ]
    for function in (vlm_r1_weighted_sum, detection_completeness):
        assert score(function, *named) == pytest.approx(score(function, *named, strict=False))


def coco(said: list[Any], true: list[Any], thresholds: list[float]) -> float:
    """COCO's protocol by hand: scores all 1, so the order of writing ranks; the labels of the truth count."""
    if not true or not said:
        return float(not true and not said)
    means = []
    for label in {item["label"] for item in true}:
        boxes = [item["bbox_2d"] for item in true if item["label"] == label]
        ranked = [item["bbox_2d"] for item in said if item["label"] == label]
        for threshold in thresholds:
            free, right = list(range(len(boxes))), []
            for box in ranked:
                # Among equals the later of the truth is taken, as pycocotools does.
                best = max(free, key=lambda j: (overlap(box, boxes[j]), j), default=None)
                hit = best is not None and overlap(box, boxes[best]) >= threshold
                right.append(hit)
                if hit:
                    free.remove(best)
            hits = np.cumsum(right)
            precision = hits / np.arange(1, len(right) + 1)
            levels = np.linspace(0, 1, 101)
            reached = [precision[hits / len(boxes) >= level - 1e-12] for level in levels]
            means.append(np.mean([found.max() if found.size else 0.0 for found in reached]))
    return float(np.mean(means))


COCO = [0.5 + 0.05 * n for n in range(10)]


@given(SAID, TRUE)
def test_average_precision_is_coco_s_and_vlm_r1_s(said: list[Any], true: list[Any]) -> None:
    assert score(od_ap50, said, true, strict=False) == pytest.approx(coco(said, true, [0.5]))
    whole = coco(said, true, COCO)
    assert score(od_ap, said, true, strict=False) == pytest.approx(whole)
    short = min(1.0, len(true) / len(said)) if said else 1.0
    assert score(od_length, said, true, strict=False) == pytest.approx(whole * short)
    by_name = resolve("rewards", "vlm_r1_ovd")(think(json.dumps(said)), true, canvases=MEDIA, strict=False)
    assert by_name == pytest.approx(whole * short)


@given(SAID, TRUE)
def test_strict_average_precision_is_precision_times_recall(said: list[Any], true: list[Any]) -> None:
    strict = score(od_ap50, said, true)
    assert 0 <= strict <= 1
    assert strict <= score(od_ap50, said, true, strict=False) + 0.01  # COCO rounds recall up to a hundredth
    if said and true:
        assert score(od_ap50, [*said, {"bbox_2d": [500, 400, 520, 420], "label": "a"}], true) <= strict + 1e-9


@given(SAID, TRUE)
def test_every_score_lies_in_its_range(said: list[Any], true: list[Any]) -> None:
    for function in ALL:
        for options in (
            {},
            {"match_labels": False},
            *([{"strict": False}] if function in WITH_STRICT else []),
        ):
            assert 0 <= score(function, said, true, **options) <= 1 + 1e-12
    assert score(detection_f1, said, true, matching="hungarian") >= score(detection_f1, said, true)
