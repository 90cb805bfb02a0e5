"""The first box of a text, and NMS-AP beside the authors' steps written out with pycocotools' numbers."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from vlrl.coordinates import Canvas
from vlrl.parsing.geometry import iou
from vlrl.rewards.benchmarks.boxes import first_box_accuracy, nms_ap
from vlrl.rewards.visual.average_precision import COCO_THRESHOLDS, average_precision

CANVAS = Canvas((200, 200), (200, 200))
WHERE: dict[str, Any] = {"canvases": [CANVAS], "frame": "original_pixels", "part": "whole"}


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("[0, 0, 100, 100]", 1),
        ("It is at (0, 0, 100, 50).", 1),  # a half is enough
        ("It is at [0, 0, 100, 49]", 0),
        ("[0, 0, 100, 100] or [150, 150, 160, 160]", 1),
        ("[150, 150, 160, 160] or [0, 0, 100, 100]", 0),
        ("(0,0),(100,100)", 1),
        ("[100, 100, 0, 0]", 0),
        ("[0, 0, 100]", 0),
        ("", 0),
    ],
)
def test_first_box_accuracy(said: str, score: float) -> None:
    assert first_box_accuracy(said, [0, 0, 100, 100], **WHERE) == score


def test_nms_ap_is_the_authors_two_steps() -> None:
    """OVDEval's eval.py: for each true box the best of those above IoU 0.5 is kept, then COCO's AP."""
    rng = random.Random(5)

    def boxes(count: int) -> list[tuple[str, tuple[float, float, float, float]]]:
        corners = [(rng.randrange(0, 36, 6), rng.randrange(0, 36, 6)) for _ in range(count)]
        return [(rng.choice("ab"), (x, y, x + 40.0, y + 40.0)) for x, y in corners]

    differ = 0
    for _ in range(60):
        written, true = boxes(7), boxes(3)
        keep, remove = set[int](), set[int]()
        for _, target in true:
            near = [n for n, (_, box) in enumerate(written) if iou(box, target) > 0.5]
            keep |= set(near[:1])
            remove |= set(near[1:])
        kept = [box for n, box in enumerate(written) if n not in remove - keep]
        plain, expected = (
            average_precision(each, true, COCO_THRESHOLDS, ranked=True) for each in (written, kept)
        )
        said, answer = (
            [{"bbox_2d": list(box), "label": label} for label, box in each] for each in (written, true)
        )
        assert nms_ap(json.dumps(said), answer, **WHERE) == pytest.approx(expected)
        differ += plain != expected
    assert differ > 10
