"""Images as values: a colour's number for every pixel. A change makes a new image and shares nothing.

Only whole numbers and bytes are at work, so that the same strokes make the same image on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from vlrl.types import ByteArray

Place: TypeAlias = tuple[int, int]
COLOURS: dict[str, tuple[int, int, int]] = {
    "white": (255, 255, 255),
    "black": (24, 24, 27),
    "grey": (140, 146, 155),
    "brown": (139, 90, 43),
    "red": (220, 38, 38),
    "orange": (245, 134, 28),
    "yellow": (250, 214, 60),
    "green": (34, 160, 72),
    "blue": (37, 99, 225),
    "purple": (128, 62, 190),
}
"""By name; an image has their places in this order."""
NUMBERS = {name: number for number, name in enumerate(COLOURS)}
_TABLE = np.array(list(COLOURS.values()), np.uint8)


class Bitmap(NamedTuple):
    """An image.

    Attributes:
        pixels: one byte each, row after row: the number of its colour.
    """

    width: int
    height: int
    pixels: bytes

    def at(self, x: int, y: int) -> int:
        """The number of a pixel's colour."""
        return self.pixels[y * self.width + x]

    def has(self, x: int, y: int) -> bool:
        """Whether there is such a pixel."""
        return 0 <= x < self.width and 0 <= y < self.height


def blank(width: int, height: int) -> Bitmap:
    """All white."""
    return Bitmap(width, height, bytes(width * height))


def coloured(width: int, height: int, image: Bitmap) -> ByteArray:
    """A painter: [height, width, 3], white where the image ends."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    numbers = np.frombuffer(image.pixels, np.uint8).reshape(image.height, image.width)
    part = _TABLE[numbers % len(_TABLE)][:height, :width]
    pixels[: part.shape[0], : part.shape[1]] = part
    return pixels


def stroke(image: Bitmap, path: Sequence[Place], colour: int, thick: int) -> Bitmap:
    """A line from place to place with a square brush."""
    pixels = np.frombuffer(image.pixels, np.uint8).reshape(image.height, image.width).copy()
    before, after = (thick - 1) // 2, thick // 2 + 1
    points = list(path)
    for start, end in zip(points, points[1:] or points, strict=False):
        for x, y in _between(start, end):
            pixels[max(0, y - before) : max(0, y + after), max(0, x - before) : max(0, x + after)] = colour
    return image._replace(pixels=pixels.tobytes())


def rectangle(image: Bitmap, start: Place, end: Place, colour: int, thick: int) -> Bitmap:
    """The four sides."""
    (x0, y0), (x1, y1) = start, end
    return stroke(image, ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)), colour, thick)


def box(image: Bitmap, start: Place, end: Place, colour: int) -> Bitmap:
    """A rectangle that is full."""
    pixels = np.frombuffer(image.pixels, np.uint8).reshape(image.height, image.width).copy()
    pixels[start[1] : end[1] + 1, start[0] : end[0] + 1] = colour
    return image._replace(pixels=pixels.tobytes())


def disc(image: Bitmap, middle: Place, radius: int, colour: int) -> Bitmap:
    """A round spot."""
    pixels = np.frombuffer(image.pixels, np.uint8).reshape(image.height, image.width).copy()
    y, x = np.ogrid[: image.height, : image.width]
    pixels[(x - middle[0]) ** 2 + (y - middle[1]) ** 2 <= radius**2] = colour
    return image._replace(pixels=pixels.tobytes())


def region(image: Bitmap, place: Place) -> bytes:
    """One byte a pixel: 1 where one comes from a place without leaving its colour."""
    wide, colour = image.width, image.at(*place)
    is_open = bytearray(bytes(int(number == colour) for number in range(256)))
    free = bytearray(image.pixels.translate(bytes(is_open)))
    reached = bytearray(len(free))
    waiting = [place]
    while waiting:
        x, y = waiting.pop()
        if not free[y * wide + x]:
            continue
        start, end = y * wide, (y + 1) * wide
        left = max(start, free.rfind(0, start, start + x) + 1)
        right = free.find(0, start + x, end)
        right = end if right < 0 else right
        free[left:right] = bytes(right - left)
        reached[left:right] = b"\1" * (right - left)
        for other in (y - 1, y + 1):
            if 0 <= other < image.height:
                shift = (other - y) * wide
                at = free.find(1, left + shift, right + shift)
                while at >= 0:
                    waiting.append((at - other * wide, other))
                    at = free.find(0, at, right + shift)
                    at = free.find(1, at, right + shift) if at >= 0 else -1
    return bytes(reached)


def filled(image: Bitmap, place: Place, colour: int) -> Bitmap:
    """Another colour for all that hangs together with a place and has its colour."""
    if not image.has(*place):
        return image
    reached = np.frombuffer(region(image, place), np.uint8)
    pixels = np.where(reached, np.uint8(colour), np.frombuffer(image.pixels, np.uint8))
    return image._replace(pixels=pixels.tobytes())


def changed(before: Bitmap, after: Bitmap) -> list[tuple[int, int, int]]:
    """(x, y, number of the new colour) of every pixel that is another one."""
    old, new = (np.frombuffer(image.pixels, np.uint8) for image in (before, after))
    places = np.flatnonzero(old != new).tolist()
    return [(place % before.width, place // before.width, int(new[place])) for place in places]


def _between(start: Place, end: Place) -> list[Place]:
    """The pixels of a line, both ends included."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    steps = max(abs(dx), abs(dy), 1)
    return [
        (start[0] + (2 * dx * n + steps) // (2 * steps), start[1] + (2 * dy * n + steps) // (2 * steps))
        for n in range(steps + 1)
    ]
