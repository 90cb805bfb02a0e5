"""Things on a table, as in CLEVR: shapes with a colour, a size and a material, and words that pick some out.

Reference: Johnson et al. 2017, arXiv 1612.06890; these are flat drawings that look solid, not renderings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from vlrl.envs.visual.drawing.draw import COLOURS, UNITS, WHITE, Sketch, shade
from vlrl.types import ByteArray

Shape: TypeAlias = Literal["cube", "ball", "cylinder", "cone"]
Size: TypeAlias = Literal["small", "large"]
Material: TypeAlias = Literal["metal", "rubber"]
BoxTuple: TypeAlias = tuple[float, float, float, float]
Filter: TypeAlias = Mapping[str, str]
"""Attribute → value; a thing matches if it has all of them, so {} matches everything."""

VALUES: Mapping[str, Sequence[str]] = {
    "size": get_args(Size),
    "colour": ("red", "yellow", "green", "cyan", "blue", "purple", "brown", "gray"),
    "material": get_args(Material),
    "shape": get_args(Shape),
}
"""Attribute → what it may be, in the order in which words are said."""

RADII: Mapping[str, float] = {"small": 11, "large": 19}
"""Half of a thing's width and height, in units; the same in every image."""
FLOOR = (226, 226, 222)
SHADOW = (201, 201, 197)
_DEPTH = 0.42  # how far a cube's upper face reaches back, as a share of its half width


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing; x and y are its middle in units."""

    size: str
    colour: str
    material: str
    shape: str
    x: float = 0.0
    y: float = 0.0

    @property
    def radius(self) -> float:
        """Half of its width and height, in units."""
        return RADII[self.size]

    @property
    def box(self) -> BoxTuple:
        """(x0, y0, x1, y1) in units, of the thing without its shadow: everything fills its square."""
        r = self.radius
        return self.x - r, self.y - r, self.x + r, self.y + r

    def matches(self, wanted: Filter) -> bool:
        """Whether it has all these attributes."""
        return all(getattr(self, name) == value for name, value in wanted.items())

    def attributes(self, names: Sequence[str]) -> dict[str, str]:
        """Those of its attributes, as a filter."""
        return {name: getattr(self, name) for name in names}


def say(wanted: Filter, plural: bool = False) -> str:
    """A filter in words, such as "small red cubes"; things where it names no shape."""
    words = [wanted[name] for name in VALUES if name in wanted and name != "shape"]
    noun = wanted.get("shape", "thing")
    return " ".join([*words, f"{noun}s" if plural else noun])


def draw_value(rng: np.random.Generator, name: str) -> str:
    """A value of an attribute, evenly."""
    return VALUES[name][int(rng.integers(len(VALUES[name])))]


def draw_filter(rng: np.random.Generator, num_attributes: int) -> dict[str, str]:
    """A filter on so many attributes."""
    names = rng.permutation(list(VALUES))[:num_attributes].tolist()
    return {name: draw_value(rng, name) for name in names}


def matching(rng: np.random.Generator, wanted: Filter) -> Thing:
    """A thing that matches; the rest of it is drawn evenly."""
    return _thing({name: wanted.get(name) or draw_value(rng, name) for name in VALUES})


def _thing(values: Mapping[str, str]) -> Thing:
    return Thing(values["size"], values["colour"], values["material"], values["shape"])


def not_matching(rng: np.random.Generator, unwanted: Sequence[Filter]) -> Thing:
    """A thing that matches none of the filters, each of which must leave something over."""
    while True:
        thing = matching(rng, {})
        if not any(thing.matches(wanted) for wanted in unwanted):
            return thing


def scatter(rng: np.random.Generator, things: Sequence[Thing], columns: int) -> list[Thing]:
    """Give things their places: each in its own cell of a columns × columns grid, somewhere in it.

    Cells hold a large thing and a gap, so nothing covers anything; the order of things is shuffled.
    """
    cell = UNITS / columns
    cells = rng.permutation(columns * columns)[: len(things)].tolist()
    shifts = rng.uniform(-1, 1, (len(things), 2)).tolist()
    placed = []
    for thing, index, (right, down) in zip(things, cells, shifts, strict=True):
        room = cell / 2 - thing.radius - 2
        x, y = (index % columns + 0.5) * cell + right * room, (index // columns + 0.5) * cell + down * room
        placed.append(Thing(thing.size, thing.colour, thing.material, thing.shape, round(x), round(y)))
    return placed


def distance(one: Thing, other: Thing) -> float:
    """Distance from middle to middle in units."""
    return math.dist((one.x, one.y), (other.x, other.y))


def columns_for(num_things: int) -> int:
    """Columns of a grid in which so many things have room to lie about: 3 to 5."""
    return min(max(3, math.ceil(math.sqrt(num_things * 1.4))), 5)


def draw_things(image_size: int, things: Sequence[Thing]) -> ByteArray:
    """The image: [image_size, image_size, 3] uint8."""
    image = Sketch(image_size, FLOOR)
    paint_things(image, things)
    return image.finish()


def paint_things(image: Sketch, things: Sequence[Thing]) -> None:
    """Paint things on an image of their floor."""
    for thing in things:  # all shadows first, so that none falls on a neighbour
        x, y, r = thing.x, thing.y, thing.radius
        image.ellipse((x - r * 0.9, y + r * 0.55, x + r * 1.25, y + r * 1.15), SHADOW)
    for thing in things:
        _BODIES[thing.shape](image, thing)


def _tones(thing: Thing) -> tuple[tuple[int, int, int], ...]:
    """(lit, plain, shaded, edge)."""
    colour = COLOURS[thing.colour]
    contrast = 0.5 if thing.material == "metal" else 0.22
    return shade(colour, contrast), colour, shade(colour, -contrast * 0.75), shade(colour, -0.5)


def _ball(image: Sketch, thing: Thing) -> None:
    lit, plain, shaded, edge = _tones(thing)
    x, y, r = thing.x, thing.y, thing.radius
    image.circle((x, y), r, shaded, edge, 1)
    image.circle((x - r * 0.1, y - r * 0.1), r * 0.8, plain)
    image.circle((x - r * 0.25, y - r * 0.28), r * 0.45, lit)
    if thing.material == "metal":
        image.circle((x - r * 0.32, y - r * 0.36), r * 0.22, WHITE)
        image.arc((x, y), r * 0.78, 20, 80, lit, r * 0.12)


def _cube(image: Sketch, thing: Thing) -> None:
    lit, plain, shaded, edge = _tones(thing)
    x0, y0, x1, y1 = thing.box
    back = thing.radius * _DEPTH
    front, top = x1 - back, y0 + back
    image.polygon([(x0, top), (x0 + back, y0), (x1, y0), (front, top)], lit)
    image.polygon([(front, top), (x1, y0), (x1, y1 - back), (front, y1)], shaded)
    image.rectangle((x0, top, front, y1), plain)
    if thing.material == "metal":
        _glint(image, x0, top, front, y1)
    image.line([(x0, top), (front, top), (front, y1)], edge, 0.7)
    image.line([(front, top), (x1, y0)], edge, 0.7)


def _cylinder(image: Sketch, thing: Thing) -> None:
    lit, plain, shaded, edge = _tones(thing)
    x0, y0, x1, y1 = thing.box
    rim = thing.radius * 0.36
    image.ellipse((x0, y1 - 2 * rim, x1, y1), plain)
    image.rectangle((x0, y0 + rim, x1, y1 - rim), plain)
    image.rectangle((x1 - thing.radius * 0.5, y0 + rim, x1, y1 - rim), shaded)
    if thing.material == "metal":
        _glint(image, x0, y0 + rim, x1 - thing.radius * 0.5, y1 - rim)
    image.ellipse((x0, y0, x1, y0 + 2 * rim), lit, edge, 0.7)


def _cone(image: Sketch, thing: Thing) -> None:
    lit, plain, shaded, _ = _tones(thing)
    x0, y0, x1, y1 = thing.box
    rim = thing.radius * 0.3
    image.ellipse((x0, y1 - 2 * rim, x1, y1), plain)
    image.polygon([(thing.x, y0), (x0, y1 - rim), (x1, y1 - rim)], plain)
    image.polygon([(thing.x, y0), (thing.x + thing.radius * 0.35, y1 - rim * 0.1), (x1, y1 - rim)], shaded)
    image.polygon([(thing.x, y0), (x0 + rim, y1 - rim * 0.5), (thing.x - rim, y1)], lit)
    if thing.material == "metal":
        r = thing.radius
        image.line([(thing.x - r * 0.12, y0 + r * 0.6), (thing.x - r * 0.42, y1 - rim)], WHITE, r * 0.14)


def _glint(image: Sketch, x0: float, y0: float, x1: float, y1: float) -> None:
    """Light on polished metal: a slanted white band."""
    wide = x1 - x0
    left, band = x0 + wide * 0.2, wide * 0.22
    image.polygon([(left + band, y0), (left + 2 * band, y0), (left + band, y1), (left, y1)], WHITE)


_BODIES = {"ball": _ball, "cube": _cube, "cylinder": _cylinder, "cone": _cone}
