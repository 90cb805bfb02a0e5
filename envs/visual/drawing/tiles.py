"""Square tiles for boards, painted once for each size, and boards laid out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from vlrl.envs.visual.drawing.draw import COLOURS, INK, WHITE, Colour, Sketch, shade
from vlrl.types import ByteArray

GROUND: Colour = (243, 238, 226)
BRICK: Colour = (104, 92, 88)
ICE: Colour = (214, 234, 246)
MARGIN: Colour = (60, 64, 74)

DIRECTIONS: Mapping[str, tuple[int, int]] = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
"""Moves on a board as (rows, columns), in Gymnasium's order."""


def floor(image: Sketch) -> None:
    """A bare field, framed faintly."""
    image.rectangle((0, 0, 100, 100), GROUND, shade(GROUND, -0.07), 3)


def wall(image: Sketch) -> None:
    """Three courses of bricks."""
    image.rectangle((0, 0, 100, 100), shade(BRICK, -0.3))
    for row, left in enumerate((0, -25, 0)):
        for column in range(3):
            x, y = left + column * 50, row * 33.3
            image.rectangle((x + 2, y + 2, x + 48, y + 31), BRICK)


def target(image: Sketch) -> None:
    """A field with a red ring, where a box belongs."""
    floor(image)
    image.circle((50, 50), 26, None, COLOURS["red"], 9)
    image.circle((50, 50), 7, COLOURS["red"])


def box(image: Sketch) -> None:
    """A crate of wood."""
    floor(image)
    _crate(image, (214, 160, 92))


def box_home(image: Sketch) -> None:
    """A crate on its target: green."""
    floor(image)
    _crate(image, COLOURS["green"])


def player(image: Sketch) -> None:
    """The figure that is moved, on a bare field."""
    floor(image)
    figure(image)


def player_on_target(image: Sketch) -> None:
    """The figure, standing on a target."""
    target(image)
    figure(image, radius=31)


def flag(image: Sketch) -> None:
    """Where to go."""
    floor(image)
    pennant(image)


def ice(image: Sketch) -> None:
    """Frozen water."""
    image.rectangle((0, 0, 100, 100), ICE, WHITE, 4)
    image.line([(18, 40), (40, 18)], WHITE, 5)
    image.line([(55, 82), (82, 55)], WHITE, 5)


def hole(image: Sketch) -> None:
    """A hole in the ice."""
    ice(image)
    image.circle((50, 50), 37, shade(COLOURS["blue"], -0.55), shade(COLOURS["blue"], 0.35), 6)


def skater(image: Sketch) -> None:
    """The figure on the ice."""
    ice(image)
    figure(image, colour=COLOURS["orange"])


def drowned(image: Sketch) -> None:
    """The figure in a hole."""
    hole(image)
    figure(image, radius=20, colour=COLOURS["orange"])


def ice_flag(image: Sketch) -> None:
    """Where to go on the ice."""
    ice(image)
    pennant(image)


def arrived(image: Sketch) -> None:
    """The figure at its goal."""
    ice(image)
    pennant(image)
    figure(image, radius=26, colour=COLOURS["orange"])


def figure(image: Sketch, radius: float = 36, colour: Colour = COLOURS["blue"]) -> None:
    """A round figure with eyes in the middle of a field of 100 units."""
    image.circle((50, 50), radius, colour, shade(colour, -0.35), radius / 7)
    for x in (50 - radius * 0.36, 50 + radius * 0.36):
        image.circle((x, 50 - radius * 0.15), radius * 0.24, WHITE)
        image.circle((x, 50 - radius * 0.1), radius * 0.12, INK)


def pennant(image: Sketch) -> None:
    """A green flag in a field of 100 units."""
    image.line([(34, 14), (34, 88)], INK, 7)
    image.polygon([(37, 14), (84, 31), (37, 50)], COLOURS["green"], shade(COLOURS["green"], -0.35), 3)


def _crate(image: Sketch, colour: Colour) -> None:
    dark = shade(colour, -0.4)
    image.rectangle((10, 10, 90, 90), colour, dark, 8)
    image.line([(20, 20), (80, 80)], dark, 7)
    image.line([(80, 20), (20, 80)], dark, 7)


@cache
def sprite(painter: Callable[[Sketch], None], side: int) -> ByteArray:
    """What a painter paints on a field of 100 by 100 units: [side, side, 3] uint8, shared, read-only."""
    image = Sketch(side, GROUND, 100, 100)
    painter(image)
    pixels = image.finish()
    pixels.setflags(write=False)
    return pixels


def plain(size: int, colour: Colour) -> ByteArray:
    """One colour all over: [size, size, 3] uint8."""
    row = np.empty((size, 3), np.uint8)
    row[:] = colour
    pixels = np.empty((size, size, 3), np.uint8)
    pixels[:] = row  # whole rows are copied ten times as fast as single pixels
    return pixels


def board(rows: Sequence[Sequence[Callable[[Sketch], None]]], size: int) -> ByteArray:
    """A board of tiles, as large as fits and in the middle: [size, size, 3] uint8."""
    num_rows, num_columns = len(rows), len(rows[0])
    side = size // max(num_rows, num_columns)
    top, left = (size - num_rows * side) // 2, (size - num_columns * side) // 2
    pixels = plain(size, MARGIN)
    for row, painters in enumerate(rows):
        for column, painter in enumerate(painters):
            y, x = top + row * side, left + column * side
            pixels[y : y + side, x : x + side] = sprite(painter, side)
    return pixels
