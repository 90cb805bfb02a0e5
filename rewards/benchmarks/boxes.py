"""Official scorers of boxes: accuracy at IoU 0.5 of the first box in a text, and NMS-AP on one image.

The options that both share are those of `vlrl.rewards.visual.placed`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from vlrl.errors import ConfigError
from vlrl.parsing import geometry
from vlrl.parsing.frames import box_tuple
from vlrl.parsing.places import LabelledBox, boxes_of, read_boxes
from vlrl.parsing.strict_json import Unreadable
from vlrl.rewards.visual.average_precision import COCO_THRESHOLDS, Labelled, average_precision
from vlrl.rewards.visual.placed import Placed, placed
from vlrl.rewards.visual.scene import BoxScene, read_scene
from vlrl.scoring.author import prepared_by, reward

_NUMBER = r"\s*(-?[0-9]{1,9}(?:\.[0-9]{1,17})?)\s*"
_BRACKETS = re.compile(rf"[\[(]{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}[\])]")
SAME_PLACE = 0.5
"""Boxes that overlap a true box by more than this IoU are of the same object."""


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def first_box_accuracy(pair: Placed, *, threshold: float = 0.5) -> float:
    """1 if the IoU of the first box in the text with the true box is at least `threshold`, else 0.

    Range {0, 1}. Source: accuracy at IoU 0.5 of RefCOCO (Yu et al. 2016), read as lmms-eval reads it: the
    first four numbers in brackets, whatever stands around them. `box_iou_threshold` asks for a box alone.

    Raises:
        ConfigError: unless 0 < threshold ≤ 1.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold={threshold} must lie above 0 and not above 1")
    (true,) = pair.true(read_boxes, boxes_of, "one box")[:1]
    target = box_tuple(pair.frames.true(true.box))
    said = pair.written(_first_box)
    if said is None:
        return 0.0
    return float(geometry.iou(box_tuple(pair.frames.said(said.box)), target) >= threshold)


def _first_box(text: str) -> LabelledBox:
    found = _BRACKETS.search(text)
    boxes = read_boxes(text if found is None else f"[{', '.join(found.groups())}]")
    if not boxes:
        raise Unreadable("the text names no box")
    return boxes[0]


@reward(range=(0.0, 1.0))
@prepared_by(read_scene)
def nms_ap(scene: BoxScene, *, iou_threshold: float = SAME_PLACE) -> float:
    """COCO's average precision on one image after the boxes of the same object are reduced to one.

    NMS-AP: of the boxes written whose IoU with a true box is above `iou_threshold`, whatever their labels,
    the first is kept and the others go, unless they are kept for another true box; then AP over IoU 0.5 to
    0.95 and the labels of the true boxes. So one box under all labels, which plain AP pays in full, is worth
    its first label. Range [0, 1]. Source: OVDEval (Yao et al. 2023, arXiv 2308.13177; eval.py). Written boxes
    have no confidence: the order of writing is the ranking.

    Raises:
        ConfigError: unless 0 < iou_threshold < 1.
    """
    if not 0 < iou_threshold < 1:
        raise ConfigError(f"iou_threshold={iou_threshold} must lie between 0 and 1")
    if scene.settled is not None:
        return scene.settled
    kept = _one_of_each_place(scene, iou_threshold)
    return average_precision(kept, scene.true, COCO_THRESHOLDS, ranked=True)


def _one_of_each_place(scene: BoxScene, threshold: float) -> Sequence[Labelled]:
    written, near = scene.written or [], scene.overlap() > threshold  # [num_written, num_true]
    first = {int(np.argmax(column)) for column in near.T if column.any()}
    return [box for number, box in enumerate(written) if number in first or not near[number].any()]
