"""Images drawn for tasks: shapes of different colours, each in a place of its own."""

from __future__ import annotations

from typing import NamedTuple

from vlrl.envs.gui.emu.apps.paint import SIZE
from vlrl.envs.gui.emu.apps.parts.canvas import NUMBERS, Bitmap, Place, blank, box, disc
from vlrl.envs.gui.emu.task import Draw
from vlrl.envs.gui.emu.wording import worded

INKS = tuple(name for name in NUMBERS if name not in ("white",))
KINDS = ("disc", "square", "bar")
CELL = 100
"""Pixels of the square that a shape has for itself."""


class Shape(NamedTuple):
    """A shape in an image; `reach` is half its height."""

    kind: str
    colour: str
    middle: Place
    reach: int

    @property
    def words(self) -> str:
        """What a goal calls it."""
        return worded(f"the {{colour}} {self.kind}", colour=worded(f"{self.colour}|adjective"))

    def on(self, image: Bitmap) -> Bitmap:
        """The image with it."""
        (x, y), number, reach = self.middle, NUMBERS[self.colour], self.reach
        if self.kind == "disc":
            return disc(image, self.middle, reach, number)
        wide = reach if self.kind == "square" else 2 * reach
        return box(image, (x - wide, y - reach), (x + wide, y + reach), number)

    @property
    def sides(self) -> tuple[int, int, int, int]:
        """(x0, y0, x1, y1) of it, both ends included."""
        (x, y), wide = self.middle, 2 * self.reach if self.kind == "bar" else self.reach
        return x - wide, y - self.reach, x + wide, y + self.reach


def shapes(draw: Draw, count: int, kinds: tuple[str, ...] = KINDS) -> list[Shape]:
    """Random shapes, at most six, no two of one colour."""
    columns, rows = SIZE[0] // CELL, SIZE[1] // CELL
    cells = draw.picks([(x, y) for x in range(columns) for y in range(rows)], count)
    found = []
    for (column, row), colour in zip(cells, draw.picks(INKS, count), strict=True):
        kind = draw.pick(kinds)
        reach = draw.number(10, 16) if kind == "bar" else draw.number(15, 30)
        middle = CELL * column + draw.number(40, 60), CELL * row + draw.number(40, 60)
        found.append(Shape(kind, colour, middle, reach))
    return found


def drawn(found: list[Shape]) -> Bitmap:
    """The shapes on white."""
    image = blank(*SIZE)
    for shape in found:
        image = shape.on(image)
    return image
