"""Images of the dense web, generated: advertisements and small photos of what is offered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vlrl.envs.gui.emu.drawing.glyphs import Font, nearest_size
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import disc, plate, write
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.input.events import Command
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.types import ByteArray

ADS_HOST = "ads.example"
OFFERS = (
    ("Sleep like a stone", "The mattress of the year", "Try it"),
    ("Half price broadband", "Only until Sunday", "Switch now"),
    ("Learn to sail in a week", "Courses from May", "See dates"),
    ("Shoes that forgive", "Now in nine colours", "Shop now"),
    ("Your roof earns money", "Solar without a loan", "Find out"),
    ("A phone for grandma", "Big keys, long life", "Order"),
    ("Coffee by post", "First bag is free", "Get it"),
    ("Fix your back", "Ten minutes a day", "Start"),
    ("Islands from €99", "Ferries all summer", "Book"),
    ("Never iron again", "The shirt that knows how", "Learn more"),
    ("Insure the bicycle", "Two minutes online", "Calculate"),
    ("Meat from peas", "New in your shop", "Taste it"),
)
"""(headline, second line, what its button says) of each advertisement."""
INKS: tuple[tuple[Colour, Colour], ...] = (
    ((18, 52, 96), (242, 178, 60)),
    ((122, 24, 62), (250, 224, 206)),
    ((12, 92, 84), (244, 236, 130)),
    ((64, 42, 116), (250, 160, 140)),
    ((238, 240, 244), (216, 62, 40)),
    ((250, 240, 214), (30, 92, 60)),
    ((28, 30, 36), (120, 214, 240)),
)
"""(paper, ink) of images."""


def advert(width: int, height: int, offer: int, style: int, font: Font) -> ByteArray:
    """A painter: a headline, a second line, a button that is only drawn, some shapes behind."""
    paper, ink = INKS[style % len(INKS)]
    pixels = shapes(width, height, paper, ink, style)
    headline, second, call = OFFERS[offer]
    is_flat = width > 2 * height
    bold, small = font._replace(bold=True), Font(font.family, nearest_size(font.size - 2))
    line = max(8, font.size * 3 // 2)
    words = [headline] if is_flat else [*_halves(headline)]
    top = max(2, (height - line * (len(words) + 1 + (not is_flat) * 2)) // 2)
    right = width * 2 // 3 if is_flat else width
    for index, text in enumerate((*words, second)):
        rows = pixels[top + index * line : top + (index + 1) * line, 4:right]
        if rows.shape[0] > 8 and rows.shape[1] > 20:
            is_last = index == len(words)
            write(rows, text, small if is_last else bold, ink, "left" if is_flat else "center", 4)
    high, wide = min(line + 6, height - 4), min(width - 8, 7 * font.size)
    left = width - wide - 10 if is_flat else (width - wide) // 2
    low = (height - high) // 2 if is_flat else height - high - 6
    if low > 0 and left > 0:
        pixels[low : low + high, left : left + wide] = plate(
            wide, high, paper, ink, None, 4, call, bold, paper
        )
    return pixels


def photo(width: int, height: int, seed: int) -> ByteArray:
    """A painter: a small image of a thing, as good as any."""
    paper, ink = INKS[seed % len(INKS)]
    return shapes(width, height, mix(paper, (128, 128, 128), 30), ink, seed // 7)


def shapes(width: int, height: int, paper: Colour, ink: Colour, style: int) -> ByteArray:
    """A slope of the paper's colour with discs and a band in a mixture with the ink's."""
    share = (np.arange(height)[:, None] * 40 + np.arange(width)[None, :] * 30) // max(1, width + height)
    low, high = np.array(paper), np.array(mix(paper, ink, 35))
    slope = (low * (100 - share[..., None]) + high * share[..., None]) // 100
    pixels: ByteArray = slope.astype(np.uint8)
    rng = np.random.default_rng(style)
    for _ in range(3):
        side = max(4, int(rng.integers(height // 4 + 1, height + 2)) // 2 * 2)
        x, y = int(rng.integers(-side // 2, width)), int(rng.integers(-side // 2, height))
        x0, y0, x1, y1 = max(0, x), max(0, y), min(width, x + side), min(height, y + side)
        if x0 < x1 and y0 < y1:
            cover = disc(side, side // 2)[y0 - y : y1 - y, x0 - x : x1 - x].astype(np.int32)[..., None] // 4
            area = pixels[y0:y1, x0:x1]
            area[:] = (area * (255 - cover) + np.array(ink) * cover + 127) // 255
    return pixels


def _halves(text: str) -> tuple[str, str]:
    """A text in two lines, at the blank nearest to its middle."""
    blanks = [index for index, letter in enumerate(text) if letter == " "]
    at = min(blanks, key=lambda index: abs(index - len(text) // 2))
    return text[:at], text[at + 1 :]


@dataclass(slots=True, init=False)
class Advert(Widget):
    """An advertisement; a click leads to what it advertises."""

    offer: int
    style: int
    role: ClassVar[str] = "link"
    fills_width: ClassVar[bool] = True

    def __init__(self, id: str, offer: int, style: int, width: int, height: int) -> None:
        """Say which it is, and its size in pixels of font size 13."""
        Widget.__init__(self, id=id, name=f"Advertisement: {OFFERS[offer][0]}", width=width, height=height)
        self.press = Command(f"go:{ADS_HOST}/offer/{offer}")
        self.offer, self.style = offer, style

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The image, and above its corner what it is."""
        font, small = view.look.font, view.look.small
        items.append((*box, clip, advert, (self.offer, self.style, font)))
        values = ((250, 250, 250), (250, 250, 250), None, 0, "Ad", small, (90, 90, 90))
        wide, high = 2 * small.size, small.size + 3
        items.append((box[2] - wide, box[1], box[2], box[1] + high, clip, plate, values))


@dataclass(slots=True, init=False)
class Photo(Widget):
    """A small image of what is offered."""

    seed: int
    role: ClassVar[str] = "img"
    is_solid: ClassVar[bool] = False

    def __init__(self, name: str, seed: int, width: int, height: int) -> None:
        """Say what it shows, and its size in pixels of font size 13."""
        Widget.__init__(self, name=name, width=width, height=height)
        self.seed = seed

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The image."""
        items.append((*box, clip, photo, (self.seed,)))


@dataclass(slots=True, init=False)
class Skeleton(Widget):
    """Grey bars in the place of what is still to come."""

    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True

    def __init__(self, width: int = 40, height: int = 26) -> None:
        """Say its size in pixels of font size 13."""
        Widget.__init__(self, width=width, height=height)

    def natural(self, look: Look) -> tuple[int, int]:
        """The size that was said."""
        return 0, 0

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """Grey."""
        colours = view.look.palette
        grey = mix(colours.window, colours.border, 55)
        items.append((box[0], box[1] + 2, box[2], box[3] - 2, clip, plate, (colours.window, grey, None, 3)))


class Coming(Skeleton):
    """A grey row at the end of a list of which more is to come."""

    __slots__ = ()
