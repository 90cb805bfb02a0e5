"""Colours of the desktop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Colour: TypeAlias = tuple[int, int, int]


class Palette(NamedTuple):
    """Every colour a widget may have, 0 to 255; `round` is the radius of corners in pixels."""

    window: Colour
    text: Colour
    muted: Colour
    border: Colour
    field: Colour
    button: Colour
    accent: Colour
    accent_text: Colour
    title: Colour
    title_text: Colour
    title_off: Colour
    bar: Colour
    bar_text: Colour
    selected: Colour
    wallpaper: tuple[Colour, Colour]
    round: int


def _hex(*colours: str) -> list[Colour]:
    return [(int(c[:2], 16), int(c[2:4], 16), int(c[4:], 16)) for c in colours]


def palette_from(colours: str, wallpaper: str, round: int) -> Palette:
    """A palette of colours in the order of its fields, six hexadecimal digits each.

    Args:
        colours: from `window` to `selected`, with blanks between them.
        wallpaper: its two colours.
        round: radius of corners in pixels.
    """
    low, high = _hex(*wallpaper.split())
    return Palette(
        **dict(zip(Palette._fields, _hex(*colours.split()), strict=False)), wallpaper=(low, high), round=round
    )


# window text muted border field button accent accent_text title title_text title_off bar bar_text selected
PALETTES: Mapping[str, Palette] = {
    "daylight": palette_from(
        "f6f7f9 1d2430 5f6b7a c5ccd6 ffffff e9ecf1 2f6fde ffffff ffffff 1d2430 eceff3 1f2937 f3f4f6 d5e3fb",
        "3c7bd0 9fc4ee",
        4,
    ),
    "midnight": palette_from(
        "22262e e6e9ee 9aa4b2 454c59 191c22 333945 4c9aff 0b1220 2b303a e6e9ee 22262e 14171c e6e9ee 2d4565",
        "141c2e 38496e",
        4,
    ),
    "paper": palette_from(
        "f4efe4 33291c 7a6c58 cbbfa8 fffdf7 e9e0ce a8561e ffffff e6dbc5 33291c efe8da 5a4631 f7f0e2 f3dcc4",
        "c9b48f e7dbc1",
        2,
    ),
    "slate": palette_from(
        "dfe3e8 20262d 5b6672 9aa6b2 f8f9fb cdd4dc 3a6073 ffffff 48606f ffffff 8b9aa6 2c3a44 eef2f5 bfd3de",
        "5b7886 a9bcc6",
        0,
    ),
    "breeze": palette_from(
        "eff0f1 232629 6a7075 bcc0c4 fcfcfc e3e5e7 1d8fc4 ffffff dee0e2 232629 eff0f1 e3e5e7 232629 c6e4f4",
        "2a7a9e 8fd0d8",
        3,
    ),
    "contrast": palette_from(
        "000000 ffffff d0d0d0 ffffff 000000 1a1a1a ffd400 000000 2c0a6e ffffff 000000 000000 ffffff 3a3a00",
        "000000 202020",
        0,
    ),
    "forest": palette_from(
        "eef4ee 1c2a1f 5d7062 b4c8b8 fbfefb dbe8dd 2e8b57 ffffff 2f5d43 ffffff 7f9c8b 1f3a2b e6f1e9 c8e6d2",
        "2e6b4a a9cf9d",
        5,
    ),
    "rose": palette_from(
        "fbf3f5 35202a 86697a e0c4cf ffffff f5e1e8 c2356e ffffff fae6ed 35202a f8eff2 4a2438 fbeef3 f9d3e0",
        "b85c86 f2bfa8",
        6,
    ),
    "dusk": palette_from(
        "2d2438 efe8f7 b0a3c2 56476a 231b2d 3f3350 b388ff 1c1228 3a2f4a efe8f7 2d2438 1b1424 efe8f7 4d3b70",
        "3b2a5c c0627a",
        6,
    ),
}


def mix(first: Colour, second: Colour, share: int) -> Colour:
    """`share` percent of the second colour in the first."""
    a, b = 100 - share, share
    return (
        (first[0] * a + second[0] * b + 50) // 100,
        (first[1] * a + second[1] * b + 50) // 100,
        (first[2] * a + second[2] * b + 50) // 100,
    )


_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
TONES: Mapping[str, tuple[Colour, Colour]] = {
    "red": ((214, 40, 40), _WHITE),
    "green": ((34, 150, 62), _WHITE),
    "blue": ((32, 92, 214), _WHITE),
    "yellow": ((250, 214, 40), _BLACK),
    "purple": ((134, 52, 172), _WHITE),
    "orange": ((244, 130, 24), _BLACK),
}
"""Strong colours by the names that people give them, and that of a text on each; the same in all themes."""
