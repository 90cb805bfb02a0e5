"""OKS: by hand, against pycocotools' own evaluation, and nothing for what are not keypoints."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from images import seen, think
from pycocotools.cocoeval import COCOeval

from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.visual.keypoints import COCO_SIGMAS, keypoint_oks

IMAGE = (seen((480, 640)),)
THREE = {"nose": [100, 100], "left": [200, 100], "right": [150, 200]}
OPTIONS: dict[str, Any] = {"canvases": IMAGE, "area": 10_000, "sigmas": 0.05}


def oks(said: Any, answer: Any = None, **options: Any) -> float:
    text = think(said if isinstance(said, str) else json.dumps(said))
    return keypoint_oks(text, THREE if answer is None else answer, **{**OPTIONS, **options})


def test_values_by_hand() -> None:
    assert oks(THREE) == 1
    one_off = {**THREE, "left": [210, 100]}  # d² / (2·s²·k²) = 100 / (2 · 10⁴ · 0.01) = 0.5
    assert oks(one_off) == pytest.approx((2 + math.exp(-0.5)) / 3)
    assert oks(one_off, threshold=0.9) == 0
    assert oks({**THREE, "left": None}) == pytest.approx(2 / 3)
    assert oks([[100, 100], [200, 100], [150, 200]]) == 0  # names are asked for
    in_order = [[100, 100], [200, 100], [150, 200]]
    for answer in (in_order, [100, 100, 2, 200, 100, 1, 150, 200, 2], {"keypoints": in_order}):
        assert oks(in_order, answer) == 1
    assert oks(in_order, [100, 100, 2, 0, 0, 0, 150, 200, 2]) == 1  # a joint that is not there is not scored
    assert oks([[100, 100], None, [150, 200]], [100, 100, 2, 0, 0, 0, 150, 200, 2]) == 1


def test_the_area() -> None:
    off = {**THREE, "left": [210, 100]}
    given = oks(off, area=5000)
    assert given == pytest.approx((2 + math.exp(-1)) / 3)
    assert oks(off, {"keypoints": THREE, "area": 5000}, area=None) == given
    box = {"keypoints": THREE, "bbox": [0, 0, 100, 50 / 0.53]}
    assert oks(off, box, area=None) == pytest.approx(oks(off, area=5000))
    assert oks(off, area=None) == oks(off, area=100 * 100)  # the hull of the joints


def test_agreement_with_pycocotools() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        true = np.column_stack([rng.uniform(0, 400, (17, 2)), rng.integers(0, 3, 17)])
        true[0, 2] = 2
        said = np.column_stack([true[:, :2] + rng.normal(0, 15, (17, 2)), np.ones(17)])
        area = float(rng.uniform(1e3, 1e5))
        evaluation = COCOeval(iouType="keypoints")
        evaluation._gts[1, 1] = [{"keypoints": true.ravel().tolist(), "area": area, "bbox": [0, 0, 400, 400]}]
        evaluation._dts[1, 1] = [{"keypoints": said.ravel().tolist(), "score": 1.0}]
        theirs = float(evaluation.computeOks(1, 1)[0, 0])
        ours = keypoint_oks(
            think(json.dumps(said.tolist())), true.ravel().tolist(), canvases=IMAGE, area=area
        )
        assert ours == pytest.approx(theirs, rel=1e-9)
    assert len(COCO_SIGMAS) == 17


def test_frames() -> None:
    image = (seen((480, 640), (476, 644), "per_1000"),)
    said = {name: [x / 640 * 1000, y / 480 * 1000] for name, (x, y) in THREE.items()}
    assert oks(said, canvases=image) == pytest.approx(1)
    shifted = {name: [x + 10 / 640 * 1000, y] for name, (x, y) in said.items()}
    in_unit = {name: [x / 640, y / 480] for name, (x, y) in THREE.items()}
    both = {"canvases": image, "answer_frame": "unit", "area": 10_000 / 640 / 480}
    assert oks(shifted, in_unit, **both) == pytest.approx(math.exp(-0.5))


HOSTILE = [
    "", "[]", "{}", "null", "3", '"nose"', "[[100, 100]]", json.dumps(list(THREE.values()) * 2),
    json.dumps({**THREE, "tail": [1, 1]}), '{"nose": [100, 100], "nose": [100, 100]}',
    '{"nose": [NaN, 1], "left": [1, 1], "right": [1, 1]}',
    '{"nose": [1e400, 1], "left": [1, 1], "right": [1, 1]}',
    '{"nose": [true, 1], "left": [1, 1], "right": [1, 1]}',
    '{"nose": "100", "left": [1, 1], "right": [1, 1]}',
    '{"nose": [[100, 100], [200, 100]], "left": [1, 1], "right": [1, 1]}',
    '{"nose": null, "left": null, "right": null}',
    f"{json.dumps(THREE)} {json.dumps(THREE)}", f"Here: {json.dumps(THREE)}", "[" * 10_000, "1," * 9_000,
    json.dumps([1] * 6000), '{"keypoints": ' * 1300 + "[]" + "}" * 1300, '{"nose": ' * 900 + "[]" + "}" * 900,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_are_no_keypoints_scores_nothing(text: str) -> None:
    assert oks(text) == 0
    assert keypoint_oks(text, THREE, part="whole", **OPTIONS) == 0


def test_one_spot_for_all_joints_earns_little() -> None:
    assert oks({name: [150, 133] for name in THREE}) < 0.05


@pytest.mark.parametrize(
    "answer",
    [None, "", "nose", [], {}, 7, [0, 0, 0], [[900, 0], [1, 1], [2, 2]], [float("nan"), 1, 2],
     {"keypoints": [[1, 1]], "area": 0}, {"keypoints": [[1, 1]], "bbox": [3]}, {"keypoints": [[1, 1]]}],
    ids=str,
)  # fmt: skip
def test_a_sample_without_keypoints_is_a_failure_not_a_zero(answer: Any) -> None:
    for text in ("", think("[[1, 1]]")):
        with pytest.raises(ValueError, match="sample"):
            keypoint_oks(text, answer, canvases=IMAGE, sigmas=0.05)


def test_options_are_checked_and_the_name_registered() -> None:
    assert resolve("rewards", "keypoint_oks") is keypoint_oks
    for sigmas in (None, [0.1], [0.1, 0.1, 0]):
        with pytest.raises(ConfigError, match="sigmas"):
            oks(THREE, sigmas=sigmas)
