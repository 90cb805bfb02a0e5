"""The pointer, drawn into an image: a browser without a window has none."""

from __future__ import annotations

import functools

import numpy as np

from vlrl.envs.gui.actions import Pixel
from vlrl.types import ByteArray

_SHAPE = (
    "X...........",
    "XX..........",
    "XoX.........",
    "XooX........",
    "XoooX.......",
    "XooooX......",
    "XoooooX.....",
    "XooooooX....",
    "XoooooooX...",
    "XooooooooX..",
    "XoooooXXXXX.",
    "XooXooX.....",
    "XoX.XooX....",
    "XX..XooX....",
    "X....XooX...",
    ".....XooX...",
    "......XX....",
)


def draw_pointer(pixels: ByteArray, at: Pixel, zoom: int) -> None:
    """Draw an arrow with its tip at a pixel, each of its own `zoom` pixels wide; cut off at the edges."""
    mask = _mask(zoom)
    x, y = at
    part = pixels[y : y + mask.shape[0], x : x + mask.shape[1]]
    cut = mask[: part.shape[0], : part.shape[1]]
    part[cut == 1], part[cut == 2] = 0, 255


@functools.cache
def _mask(zoom: int) -> ByteArray:
    rows = np.array([[".Xo".index(sign) for sign in row] for row in _SHAPE], np.uint8)
    return rows.repeat(zoom, 0).repeat(zoom, 1)
