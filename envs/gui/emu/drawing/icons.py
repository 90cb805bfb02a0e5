"""Small images: shapes on a grid of 24 by 24, drawn at any size."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache, cached

from vlrl.envs.gui.emu.drawing.icon_shapes import GRID, ICONS, NAMED
from vlrl.envs.gui.emu.drawing.rasters import FINE, blend, covered
from vlrl.envs.gui.emu.drawing.theme import Colour
from vlrl.types import ByteArray

CACHED_BYTES = 8_000_000
"""Of coverage: of all icons in all sizes that looks have, about."""
PART_BYTES = 250
"""What is around the coverage of a shape, about."""


class _Part(NamedTuple):
    """A shape, of an image's pixels only those around it.

    Attributes:
        cover: [height, width] coverage 0 to 255.
    """

    colour: str
    left: int
    top: int
    cover: ByteArray

    def of(self, pixels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Where it is on an image."""
        height, width = self.cover.shape
        return pixels[self.top : self.top + height, self.left : self.left + width]


def icon(width: int, height: int, name: str, ink: Colour, behind: Colour) -> ByteArray:
    """A painter: the image on one colour."""
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = behind
    for part in _parts(width, height, name):
        blend(part.of(pixels), part.cover, _colour(part.colour, ink, behind))
    return pixels


def emblem(width: int, height: int, name: str, ink: Colour) -> ByteArray:
    """A painter: the image with what lies behind showing through."""
    pixels = np.zeros((height, width, 4), np.int32)
    for part in _parts(width, height, name):
        area, share = part.of(pixels), part.cover[..., None].astype(np.int32)
        paint = np.array(_colour(part.colour, ink, (255, 255, 255)), np.int32)
        # Premultiplied sums would need a division a pixel; outside of every shape the colour does not matter.
        under = np.where(area[..., 3:] > 0, area[..., :3], paint)
        area[..., :3] = (under * (255 - share) + paint * share + 127) // 255
        area[..., 3:] = np.maximum(area[..., 3:], share)
    return pixels.astype(np.uint8)


def _colour(name: str, ink: Colour, behind: Colour) -> Colour:
    return ink if name == "ink" else behind if name == "behind" else NAMED[name]


def _num_bytes(parts: tuple[_Part, ...]) -> int:
    return sum(part.cover.nbytes + PART_BYTES for part in parts)


@cached(LRUCache(CACHED_BYTES, _num_bytes), lock=Lock(), info=True)
def _parts(width: int, height: int, name: str) -> tuple[_Part, ...]:
    return tuple(_part(width, height, *shape) for shape in ICONS[name])


def _part(width: int, height: int, colour: str, kind: str, numbers: tuple[float, ...]) -> _Part:
    """A shape, with a pixel around it: samples beside its edges are then among those looked at."""
    x0, y0, x1, y1 = _bounds(kind, numbers)
    left, right = max(0, int(x0 * width / GRID) - 1), min(width, int(x1 * width / GRID) + 2)
    top, bottom = max(0, int(y0 * height / GRID) - 1), min(height, int(y1 * height / GRID) + 2)
    x, y = (
        _samples(width)[None, left * FINE : right * FINE],
        _samples(height)[top * FINE : bottom * FINE, None],
    )
    match kind:
        case "box":
            inside = ((y >= y0) & (y < y1)) & ((x >= x0) & (x < x1))
        case "disc":
            inside = (x - numbers[0]) ** 2 + (y - numbers[1]) ** 2 <= numbers[2] ** 2
        case "ring":
            apart = (x - numbers[0]) ** 2 + (y - numbers[1]) ** 2
            inside = (apart <= numbers[2] ** 2) & (apart >= numbers[3] ** 2)
        case _:
            inside = _polygon(x, y, numbers)
    return _Part(colour, left, top, covered(inside))


@lru_cache(maxsize=128)
def _samples(side: int) -> npt.NDArray[np.float64]:
    """[side * FINE] where samples lie on the grid."""
    places: npt.NDArray[np.float64] = (np.arange(side * FINE) + 0.5) * GRID / (side * FINE)
    return places


def _bounds(kind: str, numbers: tuple[float, ...]) -> tuple[float, float, float, float]:
    """(x0, y0, x1, y1) of what a shape covers, on the grid."""
    if kind in ("disc", "ring"):
        x, y, radius = numbers[:3]
        return x - radius, y - radius, x + radius, y + radius
    across, down = numbers[::2], numbers[1::2]
    return min(across), min(down), max(across), max(down)


def _polygon(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], numbers: tuple[float, ...]
) -> npt.NDArray[np.bool_]:
    """Mask of the points inside a polygon, by the even-odd rule."""
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    inside = np.zeros((y.shape[0], x.shape[1]), bool)
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
        first, last = y[:, 0].searchsorted((min(y0, y1), max(y0, y1))).tolist()  # rows that this side crosses
        if first < last:
            inside[first:last] ^= x < x0 + (y[first:last] - y0) * (x1 - x0) / (y1 - y0)
    return inside


__all__ = ["ICONS", "emblem", "icon"]
