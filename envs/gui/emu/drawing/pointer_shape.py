"""The pointer's image."""

from __future__ import annotations

import numpy as np

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


def arrow(width: int, height: int) -> ByteArray:
    """A painter: an arrow, white with a black edge; once or several times as large as SIZE."""
    times = width // SIZE[0]
    letters = np.array([list(row) for row in SHAPE]).repeat(times, 0).repeat(times, 1)
    pixels = np.zeros((height, width, 4), np.uint8)
    pixels[letters == "."] = (255, 255, 255, 255)
    pixels[letters == "X"] = (0, 0, 0, 255)
    return pixels
