"""Counting over time: how often does a lamp blink, a ball bounce, a ball go into the box?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from vlrl.envs.visual.answers import Number
from vlrl.envs.visual.drawing.draw import COLOURS, PAPER, Sketch, shade
from vlrl.envs.visual.question import Question
from vlrl.envs.visual.videos.clips import ClipEnv, as_video, badge
from vlrl.types import ByteArray

Kind: TypeAlias = Literal["blink", "bounce", "enter"]
Times: TypeAlias = npt.NDArray[np.bool_]

HUES = ("red", "orange", "green", "cyan", "blue", "purple", "pink")

LEVELS = ((10, 3, 1), (14, 4, 2), (16, 5, 2), (20, 6, 3), (24, 8, 3))
"""(frames, most times, things), by level; a thing does it from once to most times."""


class CountOverTime(ClipEnv):
    """Lamps that light up and go out, balls that bounce, or balls that go into a box and out of it.

    From level 2 on, one or two more things of other colours do the same at their own times. 10 to 24 frames
    at 4 a second; nothing happens in the first frame nor in the last. Reward 1 for the number of times, 0
    otherwise; a guess is right once in 3, 4, 5, 6 and 8 times by level.
    """

    name = "visual/count_over_time"

    def __init__(self, level: int | Sequence[int] = 1, image_size: int = 112) -> None:
        """See GeneratedEnv."""
        super().__init__(level, image_size)

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """Draw how often, then when."""
        num_frames, most, num_things = LEVELS[level - 1]
        kind: Kind = get_args(Kind)[int(rng.integers(3))]
        hues = rng.choice(HUES, num_things, replace=False).tolist()
        counts = rng.integers(1, most + 1, num_things).tolist()
        times = [timeline(rng, num_frames, count, longest=1 if kind == "bounce" else 3) for count in counts]
        asked = int(rng.integers(num_things))
        texts = {
            "blink": f"How many times does the {hues[asked]} lamp light up?",
            "bounce": f"How many times does the {hues[asked]} ball touch the ground?",
            "enter": f"How many times does the {hues[asked]} ball go into the box on the right?",
        }
        return Question(
            text=f"{texts[kind]} Answer with a number.",
            answer=Number(counts[asked], 1, most),
            videos=[as_video(self._film(kind, hues, times))],
            metadata={"kind": kind, "times": times[asked].tolist()},
        )

    def _film(self, kind: Kind, hues: Sequence[str], times: Sequence[Times]) -> ByteArray:
        paint = {"blink": self._lamps, "bounce": self._balls, "enter": self._visits}[kind]
        frames = self.blank(len(times[0]), _stage(kind, self.image_size))
        for index, (hue, when) in enumerate(zip(hues, times, strict=True)):
            paint(frames, hue, when, 224 * (2 * index + 1) / (2 * len(hues)))
        return frames

    def _lamps(self, frames: ByteArray, hue: str, when: Times, x: float) -> None:
        side = self.pixels(56)
        looks = [badge("circle", shade(COLOURS[hue], share), side) for share in (-0.65, 0.0)]
        ray = badge("star", COLOURS["yellow"], self.pixels(72))
        for frame, lit in zip(frames, when, strict=True):
            if lit:
                self.put(frame, ray, x, 112)
            self.put(frame, looks[int(lit)], x, 112)

    def _balls(self, frames: ByteArray, hue: str, when: Times, x: float) -> None:
        ball = badge("circle", COLOURS[hue], self.pixels(34))
        for frame, away in zip(frames, _distances(when), strict=True):
            self.put(frame, ball, x, 169 - 38 * min(int(away), 3))

    def _visits(self, frames: ByteArray, hue: str, when: Times, y: float) -> None:
        ball = badge("circle", COLOURS[hue], self.pixels(34))
        # Out of the box it goes one step away for each frame to its next visit, or since its last.
        for frame, away in zip(frames, _distances(when), strict=True):
            self.put(frame, ball, 184 - 52 * min(int(away), 3) if away else 186, y)


def timeline(rng: np.random.Generator, num_frames: int, count: int, longest: int) -> Times:
    """When something is on: [num_frames] bool with `count` runs of at most `longest` frames.

    It is off in the first frame, in the last and between any two runs.
    """
    runs = 1 + rng.integers(0, longest, count)
    while runs.sum() + count + 1 > num_frames:
        runs[runs.argmax()] -= 1
    gaps = 1 + rng.multinomial(num_frames - int(runs.sum()) - count - 1, np.full(count + 1, 1 / (count + 1)))
    lengths = np.empty(2 * count + 1, np.int64)
    lengths[0::2], lengths[1::2] = gaps, runs
    on: Times = np.repeat(np.arange(2 * count + 1) % 2 == 1, lengths)
    return on


def _distances(when: Times) -> npt.NDArray[np.int64]:
    """Frames from each frame to the nearest one that is on: [num_frames]."""
    frames = np.arange(len(when))
    away: npt.NDArray[np.int64] = np.abs(frames[:, None] - np.flatnonzero(when)[None, :]).min(1)
    return away


def _stage(kind: Kind, image_size: int) -> ByteArray:
    image = Sketch(image_size, PAPER)
    if kind == "bounce":
        image.rectangle((0, 187, 224, 224), COLOURS["brown"])
        image.rectangle((0, 187, 224, 191), shade(COLOURS["brown"], -0.4))
    if kind == "enter":
        image.line([(154, 6), (218, 6), (218, 218), (154, 218)], shade(COLOURS["brown"], -0.3), 6)
        image.rectangle((154, 9, 214, 215), shade(COLOURS["yellow"], 0.7))
    return image.finish()
