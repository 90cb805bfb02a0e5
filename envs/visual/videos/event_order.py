"""Event order: several things change, one after another; which came first, which last, in which order?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from vlrl.envs.visual.answers import Choice
from vlrl.envs.visual.drawing.badges import SHAPES
from vlrl.envs.visual.drawing.draw import COLOURS, PAPER, Sketch, shade
from vlrl.envs.visual.question import Question
from vlrl.envs.visual.videos.clips import ClipEnv, as_video, badge
from vlrl.types import ByteArray

KINDS = ("lights up", "appears", "disappears", "falls down", "jumps up")
HUES = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")

LEVELS = ((2, 10, 3), (3, 12, 2), (3, 12, 2), (4, 16, 2), (5, 20, 2))
"""(events, frames, frames from one to the next at least), by level."""

LOW, HIGH = 170.0, 54.0
"""Units: where a thing lies after its fall and after its jump, or before."""


class EventOrder(ClipEnv):
    """Things of different shape and colour change once each, at different times; every change stays.

    Levels 1 and 2 ask which of 2 or 3 events came first or last; levels 3 to 5 for the order of 3, 4 or 5 of
    them. 10 to 20 frames at 4 a second. Reward 1 for the right answer, 0 otherwise; a guess is right once in
    2, 3, 6, 24 and 120 times by level.
    """

    name = "visual/event_order"

    def __init__(self, level: int | Sequence[int] = 1, image_size: int = 112) -> None:
        """See GeneratedEnv."""
        super().__init__(level, image_size)

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """Draw things, what happens to them and when."""
        num_events, num_frames, gap = LEVELS[level - 1]
        kinds = rng.choice(KINDS, num_events).tolist()
        shapes = rng.choice(SHAPES, num_events, replace=False).tolist()
        hues = rng.choice(HUES, num_events, replace=False).tolist()
        # Sorted draws from fewer frames, spread by the gap: every set of times as likely as any other.
        spare = num_frames - 2 - (num_events - 1) * (gap - 1)
        times = 1 + np.sort(rng.choice(spare, num_events, replace=False)) + np.arange(num_events) * (gap - 1)
        order = rng.permutation(num_events).tolist()
        happens = dict(zip(order, times.tolist(), strict=True))
        listed = [f"{i + 1}: the {hues[i]} {shapes[i]} {kinds[i]}" for i in range(num_events)]
        text, answer = _question(rng, level, order)
        return Question(
            text=f"These things happen: {'; '.join(listed)}. {text}",
            answer=answer,
            videos=[as_video(self._film(num_frames, kinds, shapes, hues, happens))],
            metadata={"frames": [happens[i] for i in range(num_events)]},
        )

    def _film(
        self,
        num_frames: int,
        kinds: Sequence[str],
        shapes: Sequence[str],
        hues: Sequence[str],
        happens: dict[int, int],
    ) -> ByteArray:
        frames = self.blank(num_frames, Sketch(self.image_size, PAPER).finish())
        width = 224 / len(kinds)
        side = self.pixels(min(width - 8, 52))
        for index, (kind, shape, hue) in enumerate(zip(kinds, shapes, hues, strict=True)):
            bright = badge(shape, COLOURS[hue], side)
            dark = badge(shape, shade(COLOURS[hue], -0.7), side)
            for number, frame in enumerate(frames):
                done = number >= happens[index]
                if (kind == "appears" and not done) or (kind == "disappears" and done):
                    continue
                y = {"falls down": (HIGH, LOW), "jumps up": (LOW, HIGH)}.get(kind, (112.0, 112.0))[done]
                look = dark if kind == "lights up" and not done else bright
                self.put(frame, look, (index + 0.5) * width, y)
        return frames


def _question(rng: np.random.Generator, level: int, order: Sequence[int]) -> tuple[str, Choice]:
    numbers = [str(index + 1) for index in range(len(order))]
    said = [numbers[index] for index in order]
    if level <= 2:
        first = bool(rng.integers(2))
        which = "first" if first else "last"
        text = f"Which of them happens {which}? Answer with its number."
        return text, Choice(said[0] if first else said[-1], tuple(numbers))
    orders = tuple("".join(numbers[i] for i in one) for one in permutations(range(len(order))))
    text = f"In which order do they happen? Answer with the numbers, such as {''.join(numbers[::-1])}."
    return text, Choice("".join(said), orders)
