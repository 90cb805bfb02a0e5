"""A small drawing kit: shapes with smooth edges, text, one palette; the same pixels on every machine.

Places and lengths are in units, of which an image is usually 224 wide and high whatever its size in pixels,
so an environment lays its image out once. Shapes are painted at twice the size and shrunk; corners are
rounded to whole pixels first, so that the last bit of a sine decides nothing. Text comes from the font that
ships inside Pillow, laid out by Pillow alone (a machine's own layout library would move letters), and lies
above all shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vlrl.types import ByteArray

Colour: TypeAlias = tuple[int, int, int]
Place: TypeAlias = tuple[float, float]

UNITS = 224
"""Side of a square image in units."""

COLOURS: dict[str, Colour] = {
    "red": (214, 54, 56),
    "orange": (243, 140, 34),
    "yellow": (245, 205, 60),
    "green": (58, 158, 84),
    "cyan": (64, 190, 205),
    "blue": (48, 98, 200),
    "purple": (134, 76, 172),
    "pink": (238, 130, 178),
    "brown": (128, 84, 52),
    "gray": (136, 140, 146),
}
"""Colours that have a name and are easy to distinguish."""

INK: Colour = (38, 42, 50)
PAPER: Colour = (250, 249, 246)
FAINT: Colour = (214, 214, 210)
WHITE: Colour = (255, 255, 255)

Anchor: TypeAlias = Literal["mm", "lm", "rm", "ma", "mb"]
"""Where a text lies on its place: its middle, or the middle of its left, right, upper or lower edge."""

_OVER = 2  # painted so many times larger; 2 is smooth enough and three times as quick as 4


class Sketch:
    """An image in the making."""

    def __init__(
        self,
        image_size: int,
        background: Colour = PAPER,
        width: float = UNITS,
        height: float = UNITS,
    ) -> None:
        """Start with an empty one.

        Args:
            image_size: pixels of its width.
            background: colour all over.
            width: in units.
            height: in units.
        """
        self.pixels_per_unit = image_size / width
        self._size = (image_size, _round(height * self.pixels_per_unit))
        self._scale = self.pixels_per_unit * _OVER
        self._big = Image.new("RGB", (self._size[0] * _OVER, self._size[1] * _OVER), background)
        self._draw = ImageDraw.Draw(self._big)
        self._texts: list[tuple[Place, str, float, Colour, Anchor]] = []

    def polygon(
        self, corners: Sequence[Place], fill: Colour | None, outline: Colour | None = None, width: float = 1
    ) -> None:
        """A filled polygon, outlined or not."""
        places = [self._at(x, y) for x, y in corners]
        if fill is not None:
            self._draw.polygon(places, fill)
        if outline is not None:
            self.line([*corners, corners[0], corners[1]], outline, width)

    def rectangle(
        self,
        box: tuple[float, float, float, float],
        fill: Colour | None,
        outline: Colour | None = None,
        width: float = 1,
        radius: float = 0,
    ) -> None:
        """A rectangle (x0, y0, x1, y1), outlined inside or not, with corners rounded by `radius`."""
        corners = self._box(*box)
        stroke = self._stroke(width) if outline is not None else 0
        if radius:
            self._draw.rounded_rectangle(corners, _round(radius * self._scale), fill, outline, stroke)
        else:
            self._draw.rectangle(corners, fill, outline, stroke)

    def circle(
        self,
        centre: Place,
        radius: float,
        fill: Colour | None,
        outline: Colour | None = None,
        width: float = 1,
    ) -> None:
        """A disc, outlined inside or not."""
        (x, y), r = centre, radius
        self.ellipse((x - r, y - r, x + r, y + r), fill, outline, width)

    def ellipse(
        self,
        box: tuple[float, float, float, float],
        fill: Colour | None,
        outline: Colour | None = None,
        width: float = 1,
    ) -> None:
        """The ellipse that fills a box (x0, y0, x1, y1), outlined inside or not."""
        stroke = self._stroke(width) if outline is not None else 0
        self._draw.ellipse(self._box(*box), fill, outline, stroke)

    def line(self, places: Sequence[Place], colour: Colour, width: float = 1) -> None:
        """A line through several places, its bends filled."""
        self._draw.line([self._at(x, y) for x, y in places], colour, self._stroke(width), joint="curve")

    def arc(
        self, centre: Place, radius: float, start: float, end: float, colour: Colour, width: float = 1
    ) -> None:
        """Part of a circle's rim, from `start` to `end` degrees, clockwise from three o'clock."""
        (x, y), r = centre, radius
        self._draw.arc(self._box(x - r, y - r, x + r, y + r), start, end, colour, self._stroke(width))

    def sector(self, centre: Place, radius: float, start: float, end: float, fill: Colour) -> None:
        """A slice of a disc, from `start` to `end` degrees, clockwise from three o'clock."""
        (x, y), r = centre, radius
        self._draw.pieslice(self._box(x - r, y - r, x + r, y + r), start, end, fill)

    def text(
        self, place: Place, text: str, size: float = 12, colour: Colour = INK, anchor: Anchor = "mm"
    ) -> None:
        """A line of ASCII text, `size` units high from one line to the next."""
        self._texts.append((place, text, size, colour, anchor))

    def text_width(self, text: str, size: float = 12) -> float:
        """How wide a text is, in units."""
        return _font(_round(size * self.pixels_per_unit)).getlength(text) / self.pixels_per_unit

    def finish(self) -> ByteArray:
        """The image: [height, width, 3] uint8; call it last."""
        small = self._big.reduce(_OVER)
        draw = ImageDraw.Draw(small)
        scale = self.pixels_per_unit
        for (x, y), text, size, colour, anchor in self._texts:
            place = (_round(x * scale), _round(y * scale))
            draw.text(place, text, colour, _font(_round(size * scale)), anchor)
        return np.array(small)

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return _round(x * self._scale), _round(y * self._scale)

    def _box(self, x0: float, y0: float, x1: float, y1: float) -> tuple[int, int, int, int]:
        """Pillow's boxes include their last pixel; so this is one less."""
        left, top = self._at(x0, y0)
        right, bottom = self._at(x1, y1)
        return left, top, max(left, right - 1), max(top, bottom - 1)

    def _stroke(self, width: float) -> int:
        return max(1, _round(width * self._scale))


def around(centre: Place, radius: float, degrees: float) -> Place:
    """The place on a circle, clockwise from three o'clock (y grows downwards)."""
    angle = math.radians(degrees)
    return centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)


def shade(colour: Colour, share: float) -> Colour:
    """A colour mixed with white (share above 0) or with black (below): 1 is white, −1 black."""
    goal = 255 if share > 0 else 0
    red, green, blue = (_round(part + (goal - part) * abs(share)) for part in colour)
    return red, green, blue


def _round(value: float) -> int:
    """Halves go up; round() would send them to the even neighbour."""
    return math.floor(value + 0.5)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(max(size, 6))
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("this Pillow is built without FreeType; install the one from the lock file")
    return font.font_variant(layout_engine=ImageFont.Layout.BASIC)
