"""visual/clocks: reading a clock with hands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.drawing.draw import COLOURS, INK, PAPER, UNITS, WHITE, Colour, Sketch, around, shade
from vlrl.envs.visual.question import Question, QuestionEnv
from vlrl.types import ByteArray

HALF_DAY_S = 12 * 3600
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of a twelve-hour clock, h:mm or h:mm:ss; 12, 0 and 24 are the same hour, and so are 3 and 15.

    Attributes:
        seconds: since twelve.
        grain_s: all times that are asked for are multiples of it.
    """

    seconds: int
    grain_s: int

    @property
    def text(self) -> str:
        """The time, with seconds where the question has them."""
        minutes, seconds = divmod(self.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours or 12}:{minutes:02}" + (f":{seconds:02}" if self.grain_s < 60 else "")

    def grade(self, text: str) -> float | None:
        """1 for the same time, else 0; None for what is not a time, or has seconds that are not asked for."""
        match = _TIME.fullmatch(text.strip())
        if match is None or (match[3] is None) == (self.grain_s < 60):
            return None
        hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
        if hours > 24 or minutes > 59 or seconds > 59:
            return None
        return float((hours % 12 * 60 + minutes) * 60 + seconds == self.seconds)

    def guess(self, rng: np.random.Generator) -> str:
        """Any time of the grain."""
        return ClockTime(int(rng.integers(HALF_DAY_S // self.grain_s)) * self.grain_s, self.grain_s).text


class Clocks(QuestionEnv):
    """Shows a clock and asks for the time.

    Levels: 1, full hours; 2, quarters of an hour; 3, five minutes, faces with four numerals or none; 4,
    single minutes; 5, seconds, read from a third hand, or the time some minutes earlier or later.

    Reward 1 for the right time, else 0; answers are h:mm, or h:mm:ss where seconds are asked for. All times
    of a level are equally likely: chance scores 1/12 at level 1, then 1/48, 1/144, 1/720, below 1/720.
    """

    name: ClassVar[str] = "visual/clocks"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """A time, a face, and at level 5 a calculation or seconds."""
        with_seconds = level == 5 and bool(rng.integers(2))
        grain_s = 1 if with_seconds else _GRAIN_S[level]
        shown = ClockTime(int(rng.integers(HALF_DAY_S // grain_s)) * grain_s, grain_s)
        numerals = _NUMERALS[int(rng.integers(len(_NUMERALS)))] if level > 2 else range(1, 13)
        colour = tuple(COLOURS.values())[int(rng.integers(len(COLOURS)))]
        image = _draw(self.image_size, shown, numerals, colour)
        if with_seconds:
            text = "What time does the clock show? Answer with h:mm:ss."
        else:
            text = "What time does the clock show? Answer with h:mm."
        answer = shown
        if level == 5 and not with_seconds:
            minutes = 5 * int(rng.integers(1, 24)) * int(rng.choice((-1, 1)))
            answer = ClockTime((shown.seconds + 60 * minutes) % HALF_DAY_S, grain_s)
            when = f"will it be in {minutes} minutes" if minutes > 0 else f"was it {-minutes} minutes ago"
            text = f"The clock shows the present time. What time {when}? Answer with h:mm."
        return Question(text, answer, [image], metadata={"seconds": shown.seconds})


_GRAIN_S: Mapping[int, int] = {1: 3600, 2: 900, 3: 300, 4: 60, 5: 60}
_NUMERALS: Sequence[Sequence[int]] = (range(1, 13), (3, 6, 9, 12), ())
_MIDDLE = (UNITS / 2, UNITS / 2)
_RADIUS = 100.0


def _draw(image_size: int, time: ClockTime, numerals: Sequence[int], colour: Colour) -> ByteArray:
    image = Sketch(image_size, shade(colour, 0.75))
    image.circle(_MIDDLE, _RADIUS + 8, shade(colour, -0.15))
    image.circle(_MIDDLE, _RADIUS, WHITE)
    for minute in range(60):
        long, angle = minute % 5 == 0, 6.0 * minute - 90
        ends = [around(_MIDDLE, _RADIUS - (10 if long else 6), angle), around(_MIDDLE, _RADIUS - 2, angle)]
        image.line(ends, INK, 3 if long else 1)
    for hour in numerals:
        image.text(around(_MIDDLE, _RADIUS - 24, 30 * hour - 90), str(hour), 17)
    _hands(image, time)
    return image.finish()


def _hands(image: Sketch, time: ClockTime) -> None:
    """The hour hand short and broad, and between the hours as a real one is; the seconds' thin and red."""
    _hand(image, time.seconds / HALF_DAY_S, 42, 7, INK)
    _hand(image, time.seconds % 3600 / 3600, 62, 4.5, INK)
    image.circle(_MIDDLE, 7, INK)
    if time.grain_s < 60:
        _hand(image, time.seconds % 60 / 60, 63, 1.6, COLOURS["red"])
        image.circle(_MIDDLE, 4.5, COLOURS["red"])
    image.circle(_MIDDLE, 2, PAPER)


def _hand(image: Sketch, turn: float, length: float, width: float, colour: Colour) -> None:
    """A hand that has gone `turn` of the way round; it tapers, and reaches a little over the middle."""
    angle = 360 * turn - 90
    foot, tip = around(_MIDDLE, length * 0.2, angle + 180), around(_MIDDLE, length, angle)
    corners = [around(foot, width * 0.6, angle + 90), around(foot, width * 0.6, angle - 90)]
    corners += [around(tip, width * 0.3, angle - 90), around(tip, width * 0.3, angle + 90)]
    image.polygon(corners, colour)
