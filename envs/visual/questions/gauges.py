"""visual/gauges: reading dials, thermometers and rulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from vlrl.envs.visual.answers import Number
from vlrl.envs.visual.drawing.draw import (
    COLOURS,
    FAINT,
    INK,
    PAPER,
    UNITS,
    WHITE,
    Colour,
    Sketch,
    around,
    shade,
)
from vlrl.envs.visual.question import Question, QuestionEnv

Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """What an instrument is marked with, and where it stands.

    Attributes:
        low: value at its lower end.
        step: from one numbered mark to the next.
        num_steps: of those.
        parts: marks in a step; 1 has only the numbered ones.
        mark: where it stands, in marks from the lower end.
    """

    low: float
    step: float
    num_steps: int
    parts: int
    mark: int

    @property
    def num_marks(self) -> int:
        """Number of marks from one end to the other."""
        return self.num_steps * self.parts

    @property
    def grain(self) -> float:
        """Difference in value from one mark to the next."""
        return self.step / self.parts

    @property
    def value(self) -> float:
        """Where it stands."""
        return round(self.low + self.mark * self.grain, 6)

    @property
    def share(self) -> float:
        """Where it stands, as a share of the way."""
        return self.mark / self.num_marks

    def label(self, index: int) -> str:
        """The number at a numbered mark."""
        return f"{round(self.low + index * self.step, 6):g}"


class Gauges(QuestionEnv):
    """Shows an instrument, or two, and asks what it reads; it always stands on a mark.

    Levels: 1, a dial on a numbered mark; 2, a dial, thermometer or ruler with one mark between the numbers;
    3, four or five parts between the numbers; 4, scales that start anywhere and steps of 0.5 to 50; 5, two
    instruments of one scale, by how much the second reads more than the first.

    Reward 1 for the right number, else 0; a number within a third of a mark is right. All marks are equally
    likely: chance scores 1/9 at level 1, 1/17 at 2, and 0.03 to 0.02 above.
    """

    name: ClassVar[str] = "visual/gauges"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """A scale, an instrument, and where it stands."""
        kinds = tuple(_PAINTERS)
        kind = kinds[0] if level == 1 else kinds[int(rng.integers(len(kinds)))]
        paint = _PAINTERS[kind]
        colour = COLOURS[_TINTS[int(rng.integers(len(_TINTS)))]]
        scales = [_draw_scale(rng, level)]
        image = Sketch(self.image_size, PAPER)
        if level < 5:
            paint(image, scales[0], (0, 0, UNITS, UNITS), colour)
            answer = _number(scales[0].value, scales[0].low, scales[0])
            text = f"{_READ[kind]} Answer with a number."
        else:
            first = scales[0]
            other = int(rng.integers(first.num_marks + 1))
            scales.append(Scale(first.low, first.step, first.num_steps, first.parts, other))
            boxes = _halves(kind)
            for scale, box, letter in zip(scales, boxes, "AB", strict=True):
                paint(image, scale, box, colour)
                image.text((box[0] + 12, box[1] + 12), letter, 15)
            answer = _number(scales[1].value - first.value, -first.num_steps * first.step, first)
            text = f"{_READ_BOTH[kind]} Answer with a number, negative if it is less."
        return Question(text, answer, [image.finish()], metadata={"scales": scales})


_READ = {
    "dial": "What does the dial show?",
    "thermometer": "What does the thermometer show?",
    "ruler": "At which number of the ruler does the bar end?",
}
_READ_BOTH = {
    "dial": "How much more does dial B show than dial A?",
    "thermometer": "How much more does thermometer B show than thermometer A?",
    "ruler": "How much further does bar B reach than bar A, as read on their rulers?",
}
_TINTS = ("red", "orange", "green", "blue", "purple", "brown")
_STEPS: Sequence[float] = (0.5, 1, 2, 5, 10, 20, 50)


def _number(value: float, low: float, scale: Scale) -> Number:
    high = scale.low + scale.num_steps * scale.step if low == scale.low else -low
    return Number(round(value, 6), low, high, absolute=round(scale.grain / 3, 6), grain=scale.grain)


def _draw_scale(rng: np.random.Generator, level: int) -> Scale:
    num_steps = 8 if level < 3 else int(rng.integers(5, 9))
    # two dials in an image have no room for the long numbers of the greatest step
    steps = (1.0, 10.0) if level < 3 else _STEPS if level < 5 else _STEPS[:-1]
    step = steps[int(rng.integers(len(steps)))]
    low = 0.0 if level < 4 else step * int(rng.integers(-4, 5))
    parts = {1: 1, 2: 2}.get(level) or (5 if step in (0.5, 5, 50) else (4, 5)[int(rng.integers(2))])
    return Scale(low, step, num_steps, parts, int(rng.integers(num_steps * parts + 1)))


def _halves(kind: str) -> tuple[Box, Box]:
    """Upper and lower for a ruler, left and right for the others."""
    half = UNITS / 2
    if kind == "ruler":
        return (0, 0, UNITS, half), (0, half, UNITS, UNITS)
    return (0, 0, half, UNITS), (half, 0, UNITS, UNITS)


def _dial(image: Sketch, scale: Scale, box: Box, colour: Colour) -> None:
    """Three quarters of a circle; the numbers are outside the marks, where the pointer does not reach."""
    x0, y0, x1, y1 = box
    middle, r = ((x0 + x1) / 2, (y0 + y1) / 2), min(x1 - x0, y1 - y0) / 2 - 6
    image.circle(middle, r, shade(colour, -0.2))
    image.circle(middle, r * 0.95, WHITE)
    for mark in range(scale.num_marks + 1):
        angle = 135 + 270 * mark / scale.num_marks
        long = mark % scale.parts == 0
        image.line(
            [around(middle, r * (0.46 if long else 0.51), angle), around(middle, r * 0.58, angle)],
            INK,
            r * (0.024 if long else 0.012),
        )
        if long:
            size = 13 if r > 80 else 8
            image.text(around(middle, r * 0.775, angle), scale.label(mark // scale.parts), size)
    angle = 135 + 270 * scale.share
    foot = around(middle, r * 0.16, angle + 180)
    image.polygon(
        [
            around(foot, r * 0.04, angle + 90),
            around(middle, r * 0.52, angle),
            around(foot, r * 0.04, angle - 90),
        ],
        colour,
    )
    image.circle(middle, r * 0.08, INK)


def _thermometer(image: Sketch, scale: Scale, box: Box, colour: Colour) -> None:
    """A column of liquid in a tube, marks to its right."""
    x0, y0, x1, y1 = box
    x, top, bottom = (x0 + x1) / 2 - 12, y0 + 18.0, y1 - 46.0
    image.rectangle((x - 9, top - 9, x + 9, bottom + 20), WHITE, FAINT, 1.5, radius=9)
    image.circle((x, bottom + 22), 16, colour)
    level = bottom - (bottom - top) * scale.share
    image.rectangle((x - 5, level, x + 5, bottom + 20), colour)
    for mark in range(scale.num_marks + 1):
        y = bottom - (bottom - top) * mark / scale.num_marks
        long = mark % scale.parts == 0
        image.line([(x + 11, y), (x + (21 if long else 16), y)], INK, 1.4 if long else 0.8)
        if long:
            image.text((x + 25, y), scale.label(mark // scale.parts), 12, anchor="lm")


def _ruler(image: Sketch, scale: Scale, box: Box, colour: Colour) -> None:
    """A ruler under a bar that starts at its lower end."""
    x0, y0, x1, y1 = box
    left, right, y = x0 + 24.0, x1 - 24.0, (y0 + y1) / 2
    image.rectangle((x0 + 8, y, x1 - 8, y + 40), shade(COLOURS["yellow"], 0.45), FAINT, 1)
    end = left + (right - left) * scale.share
    image.rectangle((left, y - 20, max(end, left + 1), y - 3), colour)
    for mark in range(scale.num_marks + 1):
        x = left + (right - left) * mark / scale.num_marks
        long = mark % scale.parts == 0
        image.line([(x, y), (x, y + (14 if long else 8))], INK, 1.4 if long else 0.8)
        if long:
            image.text((x, y + 26), scale.label(mark // scale.parts), 11)


_PAINTERS: Mapping[str, Callable[[Sketch, Scale, Box, Colour], None]] = {
    "dial": _dial,
    "thermometer": _thermometer,
    "ruler": _ruler,
}
