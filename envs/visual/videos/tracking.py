"""The shell game: a ball is hidden under a cup, the cups change places, where is the ball?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from vlrl.envs.visual.answers import Choice
from vlrl.envs.visual.drawing.draw import COLOURS, PAPER, Sketch, shade
from vlrl.envs.visual.question import Question
from vlrl.envs.visual.videos.clips import ClipEnv, as_video, sprite
from vlrl.types import ByteArray

LEVELS = ((3, 1), (3, 2), (4, 3), (4, 4), (5, 5))
"""(cups, times that two of them change places), by level."""

SWAP_FRAMES = 4
TABLE, LIFT, ARC = 130.0, 62.0, 40.0
"""Units: height at which cups stand, how far one is lifted, how far they swing out on their way."""


class Tracking(ClipEnv):
    """Asks under which cup the ball is at the end of a video.

    The first three frames show the ball below a lifted cup, which then covers it. The video has 8 to 24
    frames, 4 a second. Reward 1 for the number of the right cup, 0 otherwise; a guess is right once in 3
    times at levels 1 and 2, in 4 at levels 3 and 4, in 5 at level 5.
    """

    name = "visual/tracking"

    def __init__(self, level: int | Sequence[int] = 1, image_size: int = 112) -> None:
        """See GeneratedEnv."""
        super().__init__(level, image_size)

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """Hide the ball and swap cups; the ball's cup takes part in the first swap."""
        num_cups, num_swaps = LEVELS[level - 1]
        start = int(rng.integers(num_cups))
        swaps = [rng.choice(num_cups, 2, replace=False).tolist() for _ in range(num_swaps)]
        if start not in swaps[0]:
            swaps[0][0] = start
        slot = start
        for one, other in swaps:
            slot = other if slot == one else one if slot == other else slot
        numbers = tuple(str(cup + 1) for cup in range(num_cups))
        return Question(
            text=f"Under which of the {num_cups} cups is the ball at the end? Count from the left, from 1.",
            answer=Choice(numbers[slot], numbers),
            videos=[as_video(self._film(num_cups, start, swaps))],
            metadata={"start": start + 1, "swaps": [[a + 1, b + 1] for a, b in swaps]},
        )

    def _film(self, num_cups: int, start: int, swaps: Sequence[Sequence[int]]) -> ByteArray:
        slots = [224 * (2 * cup + 1) / (2 * num_cups) for cup in range(num_cups)]
        frames = self.blank(4 + SWAP_FRAMES * len(swaps), _table(self.image_size))
        cup, ball = sprite(_cup, self.pixels(42)), sprite(_ball, self.pixels(22))
        for frame, lift in zip(frames[:3], (LIFT, LIFT, 0.5 * LIFT), strict=True):
            self.put(frame, ball, slots[start], TABLE + 10)
            for index, x in enumerate(slots):
                self.put(frame, cup, x, TABLE - (lift if index == start else 0))
        for x in slots:
            self.put(frames[3], cup, x, TABLE)
        for number, (one, other) in enumerate(swaps):
            for step in range(1, SWAP_FRAMES + 1):
                share = step / SWAP_FRAMES
                swing = ARC * 4 * share * (1 - share)
                across = (slots[other] - slots[one]) * share
                places = [(x, TABLE) for index, x in enumerate(slots) if index not in (one, other)]
                places += [(slots[one] + across, TABLE - swing), (slots[other] - across, TABLE + swing)]
                for x, y in sorted(places, key=lambda place: place[1]):
                    self.put(frames[3 + number * SWAP_FRAMES + step], cup, x, y)
        return frames


def _cup(image: Sketch) -> None:
    colour = COLOURS["red"]
    image.polygon([(24, 4), (76, 4), (96, 92), (4, 92)], colour, shade(colour, -0.4), 4)
    image.polygon([(3, 80), (97, 80), (99, 95), (1, 95)], shade(colour, -0.25))
    image.polygon([(32, 12), (42, 12), (34, 74), (22, 74)], shade(colour, 0.45))


def _ball(image: Sketch) -> None:
    image.circle((50, 50), 47, COLOURS["yellow"], shade(COLOURS["yellow"], -0.4), 6)


@cache
def _table(image_size: int) -> ByteArray:
    image = Sketch(image_size, PAPER)
    image.rectangle((0, 96, 224, 224), (206, 226, 206))
    image.rectangle((0, 92, 224, 97), (150, 180, 150))
    pixels = image.finish()
    pixels.setflags(write=False)
    return pixels
