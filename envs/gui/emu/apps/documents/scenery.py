"""Photos as values, and what they show: a place, a time of day, a thing. All is rendered, nothing is stored.

Whole numbers only, so that the same photo has the same pixels on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.drawing.icons import emblem
from vlrl.envs.gui.emu.drawing.paint import paste
from vlrl.envs.gui.emu.drawing.rasters import disc
from vlrl.envs.gui.emu.drawing.theme import TONES, Colour, mix
from vlrl.types import ByteArray

PLACES = ("sea", "beach", "mountains", "meadow", "desert", "city")
TIMES = ("day", "evening", "night")
STEPS = 16
"""Parts of a pixel that the edge of a hill is counted in."""


class Photo(NamedTuple):
    """The content of a photo's file.

    Attributes:
        place: of PLACES.
        time: of TIMES.
        thing: of THINGS; "" for none.
        colour: of `theme.TONES`: the thing's.
        seed: where hills, clouds and the thing are.
        taken: day, as "2026-05-14".
        turns: quarters of a turn, clockwise, by which it lies the wrong way.
        is_blurred: whether it is out of focus.
    """

    place: str
    time: str
    thing: str = ""
    colour: str = "red"
    seed: int = 0
    taken: str = "2026-05-01"
    turns: int = 0
    is_blurred: bool = False


class Light(NamedTuple):
    """Colours of a time of day.

    Attributes:
        high: of the sky above, `low` at the horizon.
        orb: of the sun or the moon.
        tint: mixed into everything else, `share` percent of it.
    """

    high: Colour
    low: Colour
    orb: Colour
    tint: Colour
    share: int


LIGHTS: Mapping[str, Light] = {
    "day": Light((74, 144, 226), (196, 224, 250), (255, 246, 206), (255, 255, 255), 4),
    "evening": Light((70, 56, 120), (252, 160, 92), (255, 206, 110), (150, 60, 50), 34),
    "night": Light((6, 9, 26), (34, 46, 84), (236, 238, 226), (8, 12, 34), 68),
}
GROUNDS: Mapping[str, tuple[Colour, ...]] = {
    "sea": ((52, 128, 178), (36, 104, 156)),
    "beach": ((52, 128, 178), (236, 212, 160)),
    "mountains": ((150, 162, 180), (104, 122, 134), (78, 112, 78)),
    "meadow": ((126, 176, 92), (100, 158, 70), (84, 142, 58)),
    "desert": ((226, 186, 122), (208, 162, 98), (190, 142, 80)),
    "city": ((118, 124, 138), (88, 92, 104)),
}
THINGS: Mapping[str, str] = {
    "boat": "boat",
    "balloon": "balloon",
    "car": "car",
    "house": "cottage",
    "tent": "tent",
    "umbrella": "sunshade",
}
"""What may be in a photo → what people call it."""
HABITATS: Mapping[str, tuple[str, ...]] = {
    "boat": ("sea",),
    "balloon": ("mountains", "meadow", "desert"),
    "car": ("desert", "city", "meadow"),
    "house": ("meadow", "mountains"),
    "tent": ("mountains", "meadow", "desert"),
    "umbrella": ("beach",),
}
"""Thing → where it may be."""
ICONS["thing_boat"] = (
    ("ink", "poly", (2, 16, 22, 16, 18, 22, 6, 22)),
    ("dark", "box", (11.4, 2, 12.6, 16)),
    ("white", "poly", (13, 3, 20, 14.6, 13, 14.6)),
    ("paper", "poly", (11, 5, 11, 14.6, 5, 14.6)),
)
ICONS["thing_balloon"] = (
    ("ink", "disc", (12, 9, 8.4)),
    ("ink", "poly", (4.4, 12, 19.6, 12, 14, 19, 10, 19)),
    ("white", "poly", (10.4, 0.8, 13.6, 0.8, 14.6, 9, 13.2, 19, 10.8, 19, 9.4, 9)),
    ("dark", "box", (10.2, 20.4, 13.8, 23.6)),
)
ICONS["thing_car"] = (
    ("ink", "poly", (1, 13, 5, 12, 8, 7, 16, 7, 19.4, 12, 23, 13, 23, 18.6, 1, 18.6)),
    ("sky", "poly", (6.8, 12, 9, 8.4, 11.6, 8.4, 11.6, 12)),
    ("sky", "poly", (12.8, 12, 12.8, 8.4, 15.2, 8.4, 17.4, 12)),
    ("dark", "disc", (6.4, 18.6, 2.8)),
    ("dark", "disc", (17.6, 18.6, 2.8)),
    ("grey", "disc", (6.4, 18.6, 1.2)),
    ("grey", "disc", (17.6, 18.6, 1.2)),
)
ICONS["thing_house"] = (
    ("paper", "box", (4, 10, 20, 23)),
    ("ink", "poly", (12, 1.6, 23, 11.4, 1, 11.4)),
    ("dark", "box", (10, 15.6, 14, 23)),
    ("sky", "box", (5.6, 13.4, 8.8, 17)),
    ("sky", "box", (15.2, 13.4, 18.4, 17)),
)
ICONS["thing_tent"] = (
    ("ink", "poly", (12, 4, 23, 22, 1, 22)),
    ("dark", "poly", (12, 9, 16, 22, 8, 22)),
    ("white", "poly", (12, 9, 12.8, 11, 9, 22, 8, 22)),
)
ICONS["thing_umbrella"] = (
    ("paper", "box", (11.5, 8, 12.5, 23.6)),
    ("ink", "poly", (1, 11, 3, 6, 8, 2.6, 12, 2, 16, 2.6, 21, 6, 23, 11)),
    ("white", "poly", (8.4, 11, 10, 4, 12, 2, 14, 4, 15.6, 11)),
    ("ink", "poly", (10.8, 11, 11.4, 4, 12, 2, 12.6, 4, 13.2, 11)),
)
THING_HIGH: Mapping[str, int] = {
    "boat": 44,
    "balloon": 42,
    "car": 36,
    "house": 46,
    "tent": 38,
    "umbrella": 46,
}
"""Height of each thing in percent of the photo's."""


def rendered(width: int, height: int, photo: Photo, behind: Colour) -> ByteArray:
    """A painter: the photo as large as there is room, on one colour."""
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = behind
    wide, high = (3, 2) if photo.turns % 2 == 0 else (2, 3)
    unit = min(width // wide, height // high)
    if unit:
        shown = np.rot90(_upright(3 * unit, 2 * unit, photo._replace(turns=0)), -photo.turns)
        left, top = (width - wide * unit) // 2, (height - high * unit) // 2
        pixels[top : top + high * unit, left : left + wide * unit] = shown
    return pixels


@lru_cache(maxsize=64)
def _upright(width: int, height: int, photo: Photo) -> ByteArray:
    """[height, width, 3]: what the camera saw."""
    rng, light = np.random.default_rng(photo.seed), LIGHTS[photo.time]
    pixels = _sky(width, height, light)
    horizon = height * (46 + int(rng.integers(12))) // 100
    if photo.time == "night":
        _stars(pixels[:horizon], rng)
    _orb(pixels, rng, light, horizon, photo.time)
    if photo.time == "day":
        _clouds(pixels, rng, horizon)
    colours = GROUNDS[photo.place]
    for index, colour in enumerate(colours):
        lit = mix(colour, light.tint, light.share)
        base = horizon + (height - horizon) * index // (len(colours) + 1)
        if photo.place == "city" and index == 0:
            _houses(pixels, rng, base, lit, photo.time)
        else:
            _ground(pixels, rng, base, lit, _roughness(photo.place, index) * height // 100)
    if photo.place == "sea":
        _waves(pixels, rng, horizon, light)
    if photo.thing:
        _thing(pixels, rng, photo, horizon)
    return _blurred(pixels, max(2, height // 22)) if photo.is_blurred else pixels


def _roughness(place: str, index: int) -> int:
    """Height of hills in percent of the photo's."""
    return {"mountains": (38, 20, 7), "meadow": (12, 8, 5), "desert": (14, 10, 6), "beach": (0, 4)}.get(
        place, (0, 0)
    )[index]


def _sky(width: int, height: int, light: Light) -> ByteArray:
    share = (np.arange(height, dtype=np.int32) * 150 // height).clip(0, 100)[:, None]
    line = (np.array(light.high) * (100 - share) + np.array(light.low) * share + 50) // 100
    return np.repeat(line[:, None, :].astype(np.uint8), width, axis=1)


def _stars(sky: ByteArray, rng: np.random.Generator) -> None:
    for x, y in rng.integers(1000, size=(46, 2)).tolist():
        sky[y * sky.shape[0] // 1000, x * sky.shape[1] // 1000] = (226, 230, 246)


def _orb(pixels: ByteArray, rng: np.random.Generator, light: Light, horizon: int, time: str) -> None:
    """The sun or the moon; in the evening right above the horizon."""
    height, width = pixels.shape[:2]
    side = 2 * max(2, height // (13 if time == "evening" else 18))
    x = width * (12 + int(rng.integers(70))) // 100 - side // 2
    y = horizon - side * 3 // 4 if time == "evening" else height * (6 + int(rng.integers(10))) // 100
    _spot(pixels, x, y, side, light.orb)


def _spot(pixels: ByteArray, x: int, y: int, side: int, colour: Colour) -> None:
    """A disc, as far as it lies on the photo."""
    spot = np.empty((side, side, 4), np.uint8)
    spot[..., :3], spot[..., 3] = colour, disc(side, side // 2)
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = max(0, x), max(0, y), min(width, x + side), min(height, y + side)
    if x0 < x1 and y0 < y1:
        paste(pixels, spot[y0 - y : y1 - y, x0 - x : x1 - x], x0, y0)


def _clouds(pixels: ByteArray, rng: np.random.Generator, horizon: int) -> None:
    height, width = pixels.shape[:2]
    for _ in range(int(rng.integers(1, 4))):
        x, y = int(rng.integers(width)), int(rng.integers(max(1, horizon // 2)))
        for part in range(4):
            side = 2 * max(2, height * (5 + int(rng.integers(5))) // 200)
            _spot(pixels, x + part * side * 2 // 3, y + side // 4 * (part % 2), side, (250, 252, 255))


def _ground(pixels: ByteArray, rng: np.random.Generator, base: int, colour: Colour, rough: int) -> None:
    """Everything below a line of hills, `rough` pixels high."""
    width = pixels.shape[1]
    heights = rng.integers(0, max(1, STEPS * rough), size=8)
    at = np.arange(width, dtype=np.int64) * 7
    left, part = at // width, at % width
    edge = STEPS * base - (heights[left] * (width - part) + heights[left + 1] * part) // width
    top = max(0, int(edge.min()) // STEPS)
    cover = (STEPS * (np.arange(top, base + 1)[:, None] + 1) - edge[None, :]).clip(0, STEPS)[..., None]
    strip = pixels[top : base + 1]
    strip[:] = (strip * (STEPS - cover) + np.array(colour) * cover) // STEPS
    pixels[base + 1 :] = colour


def _houses(pixels: ByteArray, rng: np.random.Generator, base: int, colour: Colour, time: str) -> None:
    """A row of buildings with windows, lit at night."""
    height, width = pixels.shape[:2]
    lamp = (250, 220, 130) if time != "day" else mix(colour, (255, 255, 255), 40)
    x, pane = 0, max(1, height // 50)
    while x < width:
        wide, top = (
            width * (6 + int(rng.integers(8))) // 100 + 2,
            height * (10 + int(rng.integers(32))) // 100,
        )
        shade = mix(colour, (0, 0, 0), int(rng.integers(28)))
        pixels[base - top : base, x : x + wide] = shade
        for y in range(base - top + 2 * pane, base - pane, 3 * pane):
            for left in range(x + pane, min(x + wide, width) - pane, 3 * pane):
                if int(rng.integers(3)):
                    pixels[y : y + pane, left : left + pane] = lamp
        x += wide + int(rng.integers(2))
    pixels[base:] = colour


def _waves(pixels: ByteArray, rng: np.random.Generator, horizon: int, light: Light) -> None:
    height, width = pixels.shape[:2]
    for x, y in rng.integers(1000, size=(60, 2)).tolist():
        top, left = horizon + (height - horizon) * y // 1000, x * width // 1000
        wide = max(2, width * (1 + y // 200) // 60)
        strip = pixels[top : top + 1, left : left + wide].astype(np.int32)
        pixels[top : top + 1, left : left + wide] = (strip * 3 + np.array(light.low)) // 4


def _thing(pixels: ByteArray, rng: np.random.Generator, photo: Photo, horizon: int) -> None:
    height, width = pixels.shape[:2]
    side = height * (THING_HIGH[photo.thing] + int(rng.integers(8))) // 100
    x = (width - side) * (12 + int(rng.integers(76))) // 100
    foot = height * (84 + int(rng.integers(10))) // 100
    y = foot - side if photo.thing != "balloon" else height * (5 + int(rng.integers(14))) // 100
    ink = mix(TONES[photo.colour][0], LIGHTS[photo.time].tint, LIGHTS[photo.time].share // 3)
    paste(pixels, emblem(side, side, f"thing_{photo.thing}", ink), x, y)


def _blurred(pixels: ByteArray, reach: int) -> ByteArray:
    """Every pixel the mean of those around it, twice in each direction."""
    values: npt.NDArray[np.int64] = pixels.astype(np.int64)
    for axis in (0, 1, 0, 1):
        size = values.shape[axis]
        sums = np.concatenate([np.zeros_like(values.take([0], axis)), values.cumsum(axis)], axis)
        first, last = (np.arange(size) - reach).clip(0), (np.arange(size) + reach + 1).clip(None, size)
        count = (last - first).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        values = (sums.take(last, axis) - sums.take(first, axis)) // count
    return values.astype(np.uint8)
