"""Slides as values: what a presentation's file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vlrl.envs.gui.emu.drawing.theme import Colour


class Slide(NamedTuple):
    """One slide.

    Attributes:
        points: its text, a point a line.
        notes: what the speaker wants to say.
    """

    title: str = ""
    points: tuple[str, ...] = ()
    notes: str = ""


class Deck(NamedTuple):
    """The content of a presentation's file; `design` is one of DESIGNS."""

    slides: tuple[Slide, ...] = (Slide(),)
    design: str = "plain"


class Design(NamedTuple):
    """Colours of slides, the same under every theme of the desktop.

    Attributes:
        label: what it is called, in English.
        paper: behind everything; `ink` of the text on it.
        band: behind the title, with `head` the colour of the title.
        mark: of the points' dots and the line under the title.
    """

    label: str
    paper: Colour
    ink: Colour
    band: Colour
    head: Colour
    mark: Colour


DESIGNS: Mapping[str, Design] = {
    "plain": Design("Plain", (255, 255, 255), (45, 50, 60), (255, 255, 255), (20, 24, 32), (47, 111, 222)),
    "night": Design("Night", (28, 34, 48), (224, 229, 238), (28, 34, 48), (255, 255, 255), (255, 184, 76)),
    "band": Design("Blue band", (250, 251, 253), (45, 50, 60), (32, 74, 135), (255, 255, 255), (32, 74, 135)),
    "sand": Design("Sand", (250, 244, 230), (72, 56, 36), (236, 221, 190), (94, 58, 20), (176, 98, 32)),
}


def num_chars(slides: tuple[Slide, ...]) -> int:
    """Characters of all texts."""
    return sum(len(s.title) + sum(map(len, s.points)) + len(s.notes) for s in slides)
