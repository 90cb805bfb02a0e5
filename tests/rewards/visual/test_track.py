"""Tracking by hand: frames, absence, identities, and nothing for what is not a track."""

from __future__ import annotations

import json
from typing import Any

import pytest
from images import seen, think

from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.visual.track import track_iou

VIDEO = (seen((100, 100), (100, 100)),)
LEFT, HALF, RIGHT = [0, 0, 20, 20], [0, 0, 10, 20], [80, 80, 100, 100]
ONE = {"0": LEFT, "1": LEFT, "2": RIGHT}


def score(said: Any, answer: Any = ONE, **options: Any) -> float:
    text = said if isinstance(said, str) else json.dumps(said)
    return track_iou(think(text), answer, canvases=VIDEO, **options)


def test_one_object_by_hand() -> None:
    assert score(ONE) == score([LEFT, LEFT, RIGHT]) == score({"0.0": LEFT, "1": LEFT, "2": RIGHT}) == 1
    assert score({"any": ONE}) == score([{"track": ONE}]) == 1
    assert score([LEFT, HALF, RIGHT]) == pytest.approx(2.5 / 3)
    assert score([LEFT, HALF, RIGHT], threshold=0.6) == pytest.approx(2 / 3)
    assert score([LEFT, None, RIGHT]) == score([LEFT, RIGHT, RIGHT]) == pytest.approx(2 / 3)
    assert score([LEFT, LEFT, RIGHT, RIGHT]) == pytest.approx(3 / 4)  # a frame that is not asked for
    assert score([LEFT, None, RIGHT], [LEFT, None, RIGHT]) == 1
    assert score([LEFT, LEFT, RIGHT], [LEFT, None, RIGHT]) == pytest.approx(2 / 3)
    assert resolve("rewards", "track_iou") is track_iou


def test_several_objects_by_hand() -> None:
    two = {"a": [LEFT, LEFT], "b": [RIGHT, RIGHT]}
    assert score({"x": [RIGHT, RIGHT], "y": [LEFT, LEFT]}, two) == 1  # names do not count
    assert score({"a": [LEFT, LEFT]}, two) == 0.5
    assert score({"a": [LEFT, RIGHT], "b": [RIGHT, LEFT]}, two) == 0.5  # identities changed
    assert score({**two, "c": [HALF, HALF]}, two) == pytest.approx(4 / 6)


def test_frames_of_reference() -> None:
    video = (seen((100, 200), (100, 100), "per_1000"),)
    text = think(json.dumps([[0, 0, 100, 200], [400, 800, 500, 1000]]))
    assert track_iou(text, [[0, 0, 20, 20], [80, 80, 100, 100]], canvases=video) == pytest.approx(1)


HOSTILE = [
    "", "[]", "{}", "null", "[null, null, null]", "[[]]", "[[[]]]", '{"a": {}}',
    '{"a": {"b": {"c": [1]}}}', "[1, 2]",
    '{"x": [0, 0, 1, 1]}', '{"-1": [0, 0, 1, 1]}', '{"0": [0, 0, 1, 1], "0.0": [0, 0, 1, 1]}',
    '{"0": [20, 20, 0, 0]}', '{"0": [0, 0, NaN, 1]}',
    '{"1e999": [0, 0, 1, 1]}', "[" * 9000, '{"a":' * 1500 + "1" + "}" * 1500,
    json.dumps([[0, 0, 1, 1]] * 2001),
    json.dumps({str(n): [[0, 0, 1, 1]] for n in range(65)}), json.dumps([LEFT, LEFT, RIGHT]) * 2,
    f"The track is {json.dumps(ONE)}", "x" * 30_000, '{"track": 7}', '[{"track": 7}]',
]  # fmt: skip


@pytest.mark.parametrize("said", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_track_scores_nothing(said: str) -> None:
    assert score(said) == 0


def test_the_whole_image_in_every_frame_earns_its_share() -> None:
    assert score([[0, 0, 100, 100]] * 3) == pytest.approx(0.04)


@pytest.mark.parametrize(
    "answer", [None, "", "cat", [], {}, [None], [[0, 0, 500, 500]], {"0": "x"}, 7], ids=str
)
def test_a_sample_without_a_track_is_a_failure_not_a_zero(answer: Any) -> None:
    for said in ("", [LEFT]):
        with pytest.raises(ValueError, match="sample"):
            score(said, answer)


def test_the_threshold_is_checked() -> None:
    with pytest.raises(ConfigError, match="threshold"):
        score(ONE, threshold=0)
