"""How everything is drawn: the system's settings as fonts, colours and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vlrl.envs.gui.emu.drawing.glyphs import Font, face, nearest_size, text_width
from vlrl.envs.gui.emu.drawing.theme import PALETTES, Palette
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
}
"""The settings that change what the screen looks like, and what they are where nothing else is said."""


@dataclass(frozen=True)
class Look:
    """Fonts, colours and measures.

    Attributes:
        unit: the padding inside a widget, in pixels.
        line: height of a line of text.
        row: height of a button, a field or a row of a menu.
    """

    palette: Palette
    font: Font
    bold: Font
    small: Font
    mono: Font
    unit: int
    line: int
    row: int
    form: Form
    language: str
    bar_side: str
    menus: str
    tools: str
    title_buttons: str
    wallpaper: str

    def width(self, text: str) -> int:
        """Width of one line of text."""
        return text_width(self.font, text)


def look_of(settings: Mapping[str, Any]) -> Look:
    """The look under these settings."""
    return _look(*(settings.get(key, default) for key, default in LOOK_SETTINGS.items()))


@lru_cache(maxsize=1024)
def _look(
    theme: str,
    family: str,
    font_size: int,
    scale: int,
    language: str,
    bar_side: str,
    menus: str,
    tools: str,
    title_buttons: str,
    wallpaper: str,
    form: Form,
) -> Look:
    size = nearest_size(font_size * scale / 100)
    font = Font(family, size)
    line = face(font).height
    unit = max(3, size * 2 // 5)
    touch = size // 2 if form == "mobile" else 0  # fingers are larger than pointers
    return Look(
        PALETTES[theme],
        font,
        Font(family, size, True),
        Font(family, nearest_size(size - 2)),
        Font("mono", size),
        unit,
        line,
        line + unit + touch,
        form,
        language,
        bar_side,
        "button" if form == "mobile" else menus,
        tools,
        title_buttons,
        wallpaper,
    )
