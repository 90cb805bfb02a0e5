"""Average precision of the boxes on one image, matched by pycocotools. Written boxes have no confidence."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.parsing.geometry import BoxTuple

Labelled: TypeAlias = tuple[str, BoxTuple]
"""(label, box in original pixels)."""

COCO_THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
COCO_MAX_BOXES = 100
_NO_LIMIT = 1e15
"""An area beyond every box. pycocotools does not count false boxes above its own limit of 1e10."""


def average_precision(
    written: Sequence[Labelled], true: Sequence[Labelled], thresholds: Sequence[float], *, ranked: bool
) -> float:
    """Mean over labels and thresholds of the average precision, in [0, 1].

    Args:
        written: boxes in the order of writing, not empty.
        true: boxes, not empty.
        thresholds: of IoU.
        ranked: True is COCO's own protocol with every score 1: the order of writing is the ranking, the mean
            is over the labels of `true`, and at most 100 boxes of a label count. False treats what is
            written as one operating point: precision · recall of each label, the mean over the labels of
            either side, so that a false box costs something wherever it stands and whatever it is called.
    """
    labels = sorted({label for label, _ in (true if ranked else [*written, *true])})
    numbers = {label: number for number, label in enumerate(labels, 1)}
    cocoeval = _quiet_cocoeval()
    evaluation = cocoeval.COCOeval(_index(true, numbers), _index(written, numbers), "bbox")
    parameters = evaluation.params
    parameters.iouThrs = np.asarray(thresholds, np.float64)
    parameters.areaRng, parameters.areaRngLbl = [[0, _NO_LIMIT]], ["all"]
    parameters.maxDets = [COCO_MAX_BOXES if ranked else len(written)]
    evaluation.evaluate()
    if not ranked:
        return float(np.mean([_one_point(found) for found in evaluation.evalImgs]))
    evaluation.accumulate()
    precision = evaluation.eval["precision"]
    return float(precision[precision > -1].mean())


def _one_point(found: Any) -> npt.NDArray[np.float64]:
    """[num_thresholds] precision · recall of one label."""
    matches = np.asarray(found["dtMatches"], np.float64)  # [num_thresholds, num_written] ids, 0 for none
    num_written, num_true = len(found["dtIds"]), len(found["gtIds"])
    if not num_written or not num_true:
        return np.zeros(len(matches))
    num_right = np.count_nonzero(matches, axis=1)
    result: npt.NDArray[np.float64] = num_right / num_written * num_right / num_true
    return result


def _index(boxes: Sequence[Labelled], numbers: dict[str, int]) -> Any:
    """Boxes as pycocotools' own data set of one image; a label without a number is left out."""
    from pycocotools.coco import COCO

    data = COCO()
    data.dataset = {
        "images": [{"id": 1}],
        "categories": [{"id": number} for number in numbers.values()],
        "annotations": [
            {
                "id": place,
                "image_id": 1,
                "category_id": numbers[label],
                "bbox": [x0, y0, x1 - x0, y1 - y0],
                "area": (x1 - x0) * (y1 - y0),
                "iscrowd": 0,
                "score": 1.0,
            }
            for place, (label, (x0, y0, x1, y1)) in enumerate(boxes, 1)
            if label in numbers
        ],
    }
    data.createIndex()
    return data


@functools.cache
def _quiet_cocoeval() -> Any:
    """COCO's evaluation without its prints, which have no switch.

    Its two modules get a `print` of their own: redirecting standard output would silence other threads too.
    """
    from pycocotools import coco, cocoeval

    coco.print = cocoeval.print = lambda *args, **kwargs: None
    return cocoeval
