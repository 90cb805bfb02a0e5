"""The edges of layers: their shadows, and round corners through which one sees what lies behind."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from vlrl.envs.gui.emu.drawing.rasters import disc
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import cut
from vlrl.types import ByteArray

DARKEST = 70
"""Share of 255 of black in a shadow at the edge of what throws it."""


def shade(pixels: ByteArray, box: Box, shadow: int, radius: int, within: Box) -> None:
    """Darken what lies around a box, the more the nearer.

    Args:
        pixels: [height, width, 3], of the screen.
        box: of what throws the shadow.
        shadow: pixels that it reaches.
        radius: of the box's corners, behind which it is dark, too.
        within: what of the screen is painted.
    """
    (x0, y0, x1, y1), r, s = box, radius, shadow
    left, top, right, bottom = x0 - s, y0 - s, x1 + s, y1 + s
    pieces: list[tuple[int, int, int, int, npt.NDArray[np.uint16]]] = []
    if within[1] < y0 + r:
        pieces.append((left, top, right, y0 + r, _band(s, r, x1 - x0)))
    if within[3] > y1 - r:
        pieces.append((left, y1 - r, right, bottom, _band(s, r, x1 - x0)[::-1]))
    if within[0] < x0:
        pieces.append((left, y0 + r, x0, y1 - r, _side(s)))
    if within[2] > x1:
        pieces.append((x1, y0 + r, right, y1 - r, _side(s)[:, ::-1]))
    numbers = pixels.reshape(pixels.shape[0], -1)  # an inner loop of three takes three times as long
    for i, j, m, n, share in pieces:
        a, b, c, d = cut((i, j, m, n), within)
        if a < c and b < d:
            rows = slice(b - j, d - j) if share.shape[0] > 1 else slice(None)
            area = numbers[b:d, 3 * a : 3 * c]
            left_of_it = area * share[rows, 3 * (a - i) : 3 * (c - i)]
            left_of_it >>= 8
            area[:] = left_of_it


def paste_rounded(pixels: ByteArray, source: ByteArray, at: tuple[int, int], box: Box, radius: int) -> None:
    """Put a piece of a layer on the screen, but for what its round corners leave free.

    Args:
        pixels: [height, width, 3], of the screen.
        source: [height, width, 3], the piece.
        at: (x, y) of the piece on the screen.
        box: of the whole layer.
        radius: of its corners.
    """
    (x, y), (height, width) = at, source.shape[:2]
    front, back = _shares(radius)
    numbers = pixels.reshape(pixels.shape[0], -1)
    kept = []
    for right in (0, 1):
        for low in (0, 1):
            x0 = box[2] - radius if right else box[0]
            y0 = box[3] - radius if low else box[1]
            a, b = max(x0, x), max(y0, y)
            c, d = min(x0 + radius, x + width), min(y0 + radius, y + height)
            if a < c and b < d:
                i, j = right * radius - x0, low * radius - y0
                part = slice(b + j, d + j), slice(3 * (a + i), 3 * (c + i))
                area = numbers[b:d, 3 * a : 3 * c]
                kept.append((area, area * back[part], front[part]))
    pixels[y : y + height, x : x + width] = source
    for area, behind, share in kept:
        mixed = area * share
        mixed += behind
        mixed += 127
        mixed //= 255
        area[:] = mixed


@lru_cache(maxsize=64)
def _shares(radius: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """[2 * radius, 6 * radius] how much of 255 of a disc is its own, and how much is what lies behind."""
    own = np.repeat(disc(2 * radius, radius), 3, axis=1).astype(np.uint16)
    return own, 255 - own


@lru_cache(maxsize=64)
def _side(shadow: int) -> npt.NDArray[np.uint16]:
    """[1, 3 * shadow] how much of 256 is left of the light at the left side, from the outside to the edge."""
    return np.repeat(_fading(shadow), 3)[None]


@lru_cache(maxsize=16)
def _band(shadow: int, radius: int, width: int) -> npt.NDArray[np.uint16]:
    """[shadow + radius, 3 * (shadow + width + shadow)] the same above a layer and in the rows of its corners.

    What lies behind the layer between its corners is left as it is.
    """
    wide = shadow + radius
    off = wide - 0.5 - np.arange(wide)
    apart = np.sqrt((off * off)[:, None] + off * off) - radius
    near = np.clip(shadow - apart, 0, shadow) / shadow
    corner = np.floor(near * near * near * DARKEST)
    band = np.full((wide, 2 * shadow + width), 256, np.uint16)
    band[:shadow] = _fading(shadow)[:, None]
    band[:, :wide] = 256 - corner
    band[:, -wide:] = 256 - corner[:, ::-1]
    return np.repeat(band, 3, axis=1)


def _fading(shadow: int) -> npt.NDArray[np.uint16]:
    """[shadow] how much of 256 is left of the light, from the outside to the edge."""
    near = (np.arange(shadow) + 0.5) / shadow
    share: npt.NDArray[np.uint16] = (256 - np.floor(near * near * near * DARKEST)).astype(np.uint16)
    return share
