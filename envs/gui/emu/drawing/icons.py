"""Small images: shapes on a grid of 24 by 24, drawn at any size."""

from __future__ import annotations

from threading import Lock
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache, cached

from vlrl.envs.gui.emu.drawing.icon_shapes import GRID, ICONS, NAMED
from vlrl.envs.gui.emu.drawing.rasters import FINE, blend, covered
from vlrl.envs.gui.emu.drawing.theme import Colour
from vlrl.types import ByteArray

CACHED_BYTES = 4_000_000
_Shapes: TypeAlias = tuple[tuple[str, ByteArray], ...]


def icon(width: int, height: int, name: str, ink: Colour, behind: Colour) -> ByteArray:
    """A painter: the image on one colour."""
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = behind
    for colour, cover in _shapes(width, height, name):
        blend(pixels, cover, _colour(colour, ink, behind))
    return pixels


def emblem(width: int, height: int, name: str, ink: Colour) -> ByteArray:
    """A painter: the image with what lies behind showing through."""
    pixels = np.zeros((height, width, 4), np.int32)
    for colour, cover in _shapes(width, height, name):
        share = cover[..., None].astype(np.int32)
        paint = np.array(_colour(colour, ink, (255, 255, 255)), np.int32)
        # Premultiplied sums would need a division a pixel; outside of every shape the colour does not matter.
        under = np.where(pixels[..., 3:] > 0, pixels[..., :3], paint)
        pixels[..., :3] = (under * (255 - share) + paint * share + 127) // 255
        pixels[..., 3:] = np.maximum(pixels[..., 3:], share)
    return pixels.astype(np.uint8)


def _colour(name: str, ink: Colour, behind: Colour) -> Colour:
    return ink if name == "ink" else behind if name == "behind" else NAMED[name]


def _num_bytes(shapes: _Shapes) -> int:
    return sum(cover.nbytes for _, cover in shapes)


@cached(LRUCache(CACHED_BYTES, _num_bytes), lock=Lock(), info=True)
def _shapes(width: int, height: int, name: str) -> _Shapes:
    """(colour, [height, width] coverage 0 to 255) of each shape."""
    return tuple((colour, _cover(width, height, kind, numbers)) for colour, kind, numbers in ICONS[name])


def _cover(width: int, height: int, kind: str, numbers: tuple[float, ...]) -> ByteArray:
    x = ((np.arange(width * FINE) + 0.5) * GRID / (width * FINE))[None, :]
    y = ((np.arange(height * FINE) + 0.5) * GRID / (height * FINE))[:, None]
    match kind:
        case "box":
            x0, y0, x1, y1 = numbers
            inside = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
        case "disc":
            inside = (x - numbers[0]) ** 2 + (y - numbers[1]) ** 2 <= numbers[2] ** 2
        case "ring":
            apart = (x - numbers[0]) ** 2 + (y - numbers[1]) ** 2
            inside = (apart <= numbers[2] ** 2) & (apart >= numbers[3] ** 2)
        case _:
            inside = _polygon(x, y, numbers)
    return covered(inside)


def _polygon(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], numbers: tuple[float, ...]
) -> npt.NDArray[np.bool_]:
    """Mask of the points inside a polygon, by the even-odd rule."""
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    inside = np.zeros((y.shape[0], x.shape[1]), bool)
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
        if y0 != y1:
            crosses = (y0 <= y) != (y1 <= y)
            inside ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside


__all__ = ["ICONS", "emblem", "icon"]
