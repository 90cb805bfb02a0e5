"""Answers that are boxes in the image: one of them, or all of some kinds with their labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from vlrl.coordinates import Box, Canvas, frame_extent, quantise
from vlrl.envs.visual.answers import score
from vlrl.envs.visual.drawing.draw import UNITS
from vlrl.envs.visual.drawing.things import Thing
from vlrl.envs.visual.question import QuestionEnv
from vlrl.errors import ConfigError
from vlrl.parsing.extract import scored_text
from vlrl.parsing.places import LabelledBox, read_boxes, try_read

Frame: TypeAlias = Literal["original_pixels", "per_1000", "per_999", "unit"]
"""Frames of `vlrl.coordinates` that an environment can know: not the size a model resizes to."""
BoxTuple: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class AnswerGrid:
    """Numbers in which places on a square image are written.

    Attributes:
        image_size: pixels of a side.
        frame: original_pixels are those of the image as the environment gives it.
    """

    image_size: int
    frame: Frame = "original_pixels"

    def __post_init__(self) -> None:
        if self.frame not in get_args(Frame):
            raise ConfigError(f"option frame={self.frame!r}; give one of {', '.join(get_args(Frame))}")

    @property
    def canvas(self) -> Canvas:
        """The image as the rewards know it."""
        size = (self.image_size, self.image_size)
        return Canvas(size, size)

    @property
    def extent(self) -> float:
        """The number of the far edges."""
        return frame_extent(self.frame, self.canvas)[0]

    def box(self, shares: BoxTuple) -> list[float]:
        """A box given in shares of the side, as it is written: rounded to the frame's grain."""
        scaled = quantise(Box(*(share * self.extent for share in shares)), self.frame)
        whole = self.frame != "unit"
        return [int(x) if whole else x for x in (scaled.x0, scaled.y0, scaled.x1, scaled.y1)]

    def describe(self) -> str:
        """The frame in words, for questions."""
        if self.frame == "original_pixels":
            return f"in pixels of this {self.image_size}×{self.image_size} picture"
        return f"with 0 at the left and top edges and {self.extent:g} at the right and bottom edges"

    def random_box(self, rng: np.random.Generator) -> list[float]:
        """Any box; two corners drawn evenly."""
        ends = np.sort(rng.uniform(0, 1, (2, 2)), axis=0)
        return self.box((ends[0, 0], ends[0, 1], ends[1, 0], ends[1, 1]))


@dataclass(frozen=True, slots=True)
class OneBox:
    """One box; reward `box_iou`, its overlap with the true one.

    Attributes:
        box: [x0, y0, x1, y1] as it is written.
        grid: in which numbers.
    """

    box: Sequence[float]
    grid: AnswerGrid

    @property
    def text(self) -> str:
        """The box as JSON."""
        return json.dumps(self.box)

    def grade(self, text: str) -> float | None:
        """IoU; None for anything but one box."""
        said = _boxes(text)
        if said is None or len(said) != 1:
            return None
        frame = self.grid.frame
        canvases = [self.grid.canvas]
        return score("box_iou", text, self.box, canvases=canvases, frame=frame, answer_frame=frame)

    def guess(self, rng: np.random.Generator) -> str:
        """A box anywhere."""
        return json.dumps(self.grid.random_box(rng))


@dataclass(frozen=True, slots=True)
class LabelledBoxes:
    """All boxes of some labels; reward `detection_f1` at an IoU of 0.5.

    Attributes:
        boxes: (label, [x0, y0, x1, y1] as it is written); none at all is an answer too.
        labels: those that the question names.
        most: boxes there may be, for guesses.
        grid: in which numbers.
    """

    boxes: Sequence[tuple[str, Sequence[float]]]
    labels: Sequence[str]
    most: int
    grid: AnswerGrid

    @property
    def text(self) -> str:
        """VLM-R1's form: a JSON list of {"bbox_2d", "label"}."""
        return json.dumps([{"bbox_2d": box, "label": label} for label, box in self.boxes])

    def grade(self, text: str) -> float | None:
        """F1; None for anything but boxes."""
        if _boxes(text) is None:
            return None
        frame = self.grid.frame
        answer = [{"bbox_2d": box, "label": label} for label, box in self.boxes]
        canvases = [self.grid.canvas]
        return score("detection_f1", text, answer, canvases=canvases, frame=frame, answer_frame=frame)

    def guess(self, rng: np.random.Generator) -> str:
        """Some boxes anywhere."""
        drawn = [
            {"bbox_2d": self.grid.random_box(rng), "label": self.labels[int(rng.integers(len(self.labels)))]}
            for _ in range(int(rng.integers(1, self.most + 1)))
        ]
        return json.dumps(drawn)


class BoxQuestionEnv(QuestionEnv):
    """A question whose answer is written as boxes, on `grid`."""

    def __init__(
        self, level: int | Sequence[int] = 1, image_size: int = 224, frame: Frame = "original_pixels"
    ) -> None:
        """Choose difficulty, size, and how places are written.

        Args:
            level: as in `GeneratedEnv`.
            image_size: as in `GeneratedEnv`.
            frame: original_pixels, per_1000, per_999 or unit; see `vlrl.coordinates`.

        Raises:
            ConfigError: for a level, size or frame that there is not.
        """
        super().__init__(level, image_size)
        self.grid = AnswerGrid(image_size, frame)

    def box_of(self, thing: Thing) -> list[float]:
        """Where a thing is, as it is written."""
        x0, y0, x1, y1 = thing.box
        return self.grid.box((x0 / UNITS, y0 / UNITS, x1 / UNITS, y1 / UNITS))


def _boxes(text: str) -> list[LabelledBox] | None:
    said: list[LabelledBox] | None = try_read(read_boxes, scored_text(text, "whole"))
    return said
