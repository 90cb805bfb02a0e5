"""The pointer's image."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.emu.state import Box
from vlrl.types import ByteArray

SHAPE = (
    "X           ",
    "XX          ",
    "X.X         ",
    "X..X        ",
    "X...X       ",
    "X....X      ",
    "X.....X     ",
    "X......X    ",
    "X.......X   ",
    "X........X  ",
    "X.........X ",
    "X......XXXXX",
    "X...X..X    ",
    "X..XX..X    ",
    "X.X  X..X   ",
    "XX   X..X   ",
    "X     X..X  ",
    "      X..X  ",
    "       XX   ",
)
SIZE = (len(SHAPE[0]), len(SHAPE))
"""(width, height) in pixels; it points with its top left pixel."""
DOUBLED_FROM = 175
"""Scale in percent from which on it is twice as large."""


def paste_pointer(pixels: ByteArray, times: int, at: Pixel) -> list[Box]:
    """Put an arrow on an image, white with a black edge, as far as it lies on it; gives where it is.

    Args:
        pixels: [height, width, 3], written to.
        times: how many times as large as SIZE it is.
        at: where it points.
    """
    shape, covered = _arrow(times)
    (height, width), (x, y) = pixels.shape[:2], at
    down, across = min(shape.shape[0], height - y), min(shape.shape[1] // 3, width - x)
    if down <= 0 or across <= 0:
        return []
    area = pixels.reshape(height, 3 * width)[y : y + down, 3 * x : 3 * (x + across)]
    np.copyto(area, shape[:down, : 3 * across], where=covered[:down, : 3 * across])
    return [(x, y, x + across, y + down)]


@lru_cache(maxsize=4)
def _arrow(times: int) -> tuple[ByteArray, npt.NDArray[np.bool_]]:
    """[height, 3 * width] its numbers, and where it covers what lies behind."""
    letters = np.array([list(row) for row in SHAPE]).repeat(times, 0).repeat(3 * times, 1)
    return np.where(letters == ".", 255, 0).astype(np.uint8), letters != " "
