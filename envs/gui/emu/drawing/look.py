"""How everything is drawn: the system's settings as fonts, colours and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vlrl.envs.gui.emu.drawing.family import FAMILIES, Family
from vlrl.envs.gui.emu.drawing.glyphs import Font, face, nearest_size, text_width
from vlrl.envs.gui.emu.drawing.theme import Palette
from vlrl.envs.gui.screen import Form

LOOK_SETTINGS: Mapping[str, Any] = {
    "theme": "daylight",
    "font": "sans",
    "font_size": 13,
    "scale": 100,
    "language": "en",
    "bar_side": "bottom",
    "menus": "bar",
    "tools": "forward",
    "title_buttons": "right",
    "wallpaper": "slope",
    "form": "desktop",
    "widgets": "classic",
}
"""The settings that change what the screen looks like, and what they are where nothing else is said."""

ROWS = 10
"""How many rows a window has room for, at most, by what apps ask for."""


@dataclass(frozen=True)
class Look:
    """Fonts, colours and measures.

    Attributes:
        unit: the padding inside a widget, in pixels.
        line: height of a line of text.
        row: height of a button, a field or a row of a menu.
        title: height of a title bar.
        menus: in a "bar" of their window, behind a "button" there, or at the "top" of the screen.
        family: who draws the widgets.
    """

    palette: Palette
    font: Font
    bold: Font
    small: Font
    mono: Font
    unit: int
    line: int
    row: int
    title: int
    form: Form
    language: str
    bar_side: str
    menus: str
    tools: str
    title_buttons: str
    wallpaper: str
    family: Family

    def scaled(self, pixels: int) -> int:
        """Pixels of font size 13, as many as they are at the look's; at least one."""
        return max(1, (pixels * self.font.size + 6) // 13)

    @property
    def extra(self) -> int:
        """Pixels by which windows are higher than apps ask for, since a family's rows and title bars are."""
        return self.title - self.row - 2 + ROWS * (self.family.row * self.font.size // 13)

    def width(self, text: str) -> int:
        """Width of one line of text."""
        return text_width(self.font, text)


def look_of(settings: Mapping[str, Any]) -> Look:
    """The look under these settings."""
    return _look(*(settings.get(key, default) for key, default in LOOK_SETTINGS.items()))


@lru_cache(maxsize=1024)
def _look(
    theme: str,
    letters: str,
    font_size: int,
    scale: int,
    language: str,
    bar_side: str,
    menus: str,
    tools: str,
    title_buttons: str,
    wallpaper: str,
    form: Form,
    widgets: str,
) -> Look:
    size = nearest_size(font_size * scale / 100)
    family = FAMILIES[widgets]
    font = Font(letters, size)
    line = face(font).height
    unit = max(3, size * 2 // 5)
    touch = size // 2 if form == "mobile" else 0  # fingers are larger than pointers
    row = line + unit + touch + family.row * size // 13
    return Look(
        family.palette(theme),
        font,
        Font(letters, size, True),
        Font(letters, nearest_size(size - 2)),
        Font("mono", size),
        unit,
        line,
        row,
        row + (2 if form == "mobile" else family.title_high * size // 13 if family.title else 2),
        form,
        language,
        bar_side,
        "button" if form == "mobile" else "top" if family.menus_on_top else menus,
        tools,
        title_buttons,
        wallpaper,
        family,
    )
