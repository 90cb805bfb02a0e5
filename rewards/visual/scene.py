"""The boxes written and the boxes that are there, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vlrl.parsing.frames import box_tuple
from vlrl.parsing.geometry import iou_matrix
from vlrl.parsing.places import boxes_of, read_boxes
from vlrl.rewards.visual.average_precision import Labelled
from vlrl.rewards.visual.matching import Pairs
from vlrl.rewards.visual.placed import Placed, placed
from vlrl.scoring.author import prepared_by


@dataclass(frozen=True, slots=True)
class BoxScene:
    """What was written and what is there, as (label, box in original pixels).

    Attributes:
        written: None for a text that cannot be read.
        true: the sample's boxes.
    """

    written: list[Labelled] | None
    true: list[Labelled]

    @property
    def settled(self) -> float | None:
        """The score where there is nothing to match; None where there is."""
        if self.written is None:
            return 0.0
        if self.written and self.true:
            return None
        return float(not self.written and not self.true)

    def overlap(self) -> npt.NDArray[np.float64]:
        """[num_written, num_true] IoU."""
        return iou_matrix([box for _, box in self.written or ()], [box for _, box in self.true])

    def same_label(self) -> npt.NDArray[np.bool_]:
        """[num_written, num_true] True where the labels agree."""
        return np.array([[said == label for label, _ in self.true] for said, _ in self.written or ()], bool)

    def rates(self, pairs: Pairs) -> tuple[float, float]:
        """(precision, recall)."""
        return len(pairs) / len(self.written or ()), len(pairs) / len(self.true)


@prepared_by(placed)
def read_scene(pair: Placed, *, match_labels: bool = True) -> BoxScene:
    """The boxes of a completion and of a sample's answer.

    Args:
        pair: the boxes written and the true ones.
        match_labels: False compares places alone; it is so anyway where the answer's boxes have no labels.

    Raises:
        ConfigError: for an unknown frame.
        ValueError: if the sample is unusable.
    """
    frames, true = pair.frames, pair.true(read_boxes, boxes_of, "a list of boxes")
    labelled = {item.label is not None for item in true}
    if match_labels and len(labelled) > 1:
        raise ValueError("some of the answer's boxes have a label and some have none")
    if any(item.box.x0 == item.box.x1 or item.box.y0 == item.box.y1 for item in true):
        raise ValueError("the answer holds a box without area")
    compared = match_labels and True in labelled
    there = [(_label(item.label, compared), box_tuple(frames.true(item.box))) for item in true]
    said = pair.written(read_boxes)
    if said is None:
        return BoxScene(None, there)
    return BoxScene(
        [(_label(item.label, compared), box_tuple(frames.said(item.box))) for item in said], there
    )


def _label(label: str | None, compared: bool) -> str:
    """A label as it is compared; one that is missing equals none of the answer's."""
    if not compared:
        return ""
    return "\0" if label is None else " ".join(label.casefold().split())
