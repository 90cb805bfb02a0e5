"""Short videos: sprites put on a background, frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from vlrl.envs.visual.drawing.badges import paint_badge
from vlrl.envs.visual.drawing.draw import PAPER, Colour, Sketch
from vlrl.envs.visual.question import QuestionEnv
from vlrl.protocols import Video
from vlrl.types import ByteArray

FPS = 4.0
"""Frames per second of every clip."""


class ClipEnv(QuestionEnv):
    """Asks about a video of 8 to 24 frames at 4 frames a second; places are in units, 224 to a side."""

    def blank(self, num_frames: int, background: ByteArray) -> ByteArray:
        """Frames that show the background: [num_frames, image_size, image_size, 3] uint8."""
        frames = np.empty((num_frames, *background.shape), np.uint8)
        frames[:] = background
        return frames

    def pixels(self, units: float) -> int:
        """A length in pixels."""
        return int(units * self.image_size / 224 + 0.5)

    def put(self, frame: ByteArray, stamp: Sprite, x: float, y: float) -> None:
        """Paint a sprite with its middle at (x, y) units; it must lie inside the frame."""
        high, wide = stamp.mask.shape[:2]
        left, top = self.pixels(x) - wide // 2, self.pixels(y) - high // 2
        np.copyto(frame[top : top + high, left : left + wide], stamp.pixels, where=stamp.mask)


@dataclass(frozen=True, slots=True)
class Sprite:
    """A small image that covers what is under it only where it is not bare.

    Attributes:
        pixels: [high, wide, 3] uint8.
        mask: [high, wide, 1] bool, True where it covers.
    """

    pixels: ByteArray
    mask: npt.NDArray[np.bool_]


@cache
def sprite(painter: Callable[[Sketch], None], side: int) -> Sprite:
    """What a painter paints on a field of 100 by 100 units, `side` pixels large; edges blend into PAPER."""
    image = Sketch(side, PAPER, 100, 100)
    painter(image)
    return _cut_out(image)


@cache
def badge(shape: str, colour: Colour, side: int) -> Sprite:
    """A flat shape, `side` pixels large."""
    image = Sketch(side, PAPER, 100, 100)
    paint_badge(image, shape, colour)
    return _cut_out(image)


def as_video(frames: ByteArray) -> Video:
    """The frames, to be shown at FPS."""
    return Video(list(frames), FPS)


def _cut_out(image: Sketch) -> Sprite:
    pixels = image.finish()
    return Sprite(pixels, (pixels != np.array(PAPER, np.uint8)).any(2, keepdims=True))
