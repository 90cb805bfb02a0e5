"""What a seed changes about the looks of the desktop, and the options that pin it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vlrl.envs.gui.emu.drawing.theme import PALETTES
from vlrl.envs.gui.emu.drawing.wallpaper import WALLPAPERS
from vlrl.envs.gui.emu.families import FAMILIES
from vlrl.envs.gui.emu.strings import LANGUAGES, SCREEN
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed

CHOICES: Mapping[str, tuple[Any, ...]] = {
    "theme": tuple(PALETTES),
    "font": ("sans", "serif", "roman"),
    "font_size": (12, 13, 14),
    "scale": (100, 125, 150, 175, 200),
    "language": LANGUAGES,
    "bar_side": ("bottom", "top", "left"),
    "menus": ("bar", "button"),
    "tools": ("forward", "backward"),
    "title_buttons": ("right", "left"),
    "wallpaper": WALLPAPERS,
    "widgets": tuple(FAMILIES),
    "windows": ("one", "many", "maximised", "tiled"),
    "toasts": ("none", "some"),
    "pages": ("plain", "dense"),
    "keyboard": ("none", "screen"),
    "choices": ("menu", "sheet"),
    "goal_language": (SCREEN, *LANGUAGES),
}
"""What each may be; a seed draws from them, but for those of UNLESS_ASKED."""
UNLESS_ASKED: Mapping[str, tuple[Any, ...]] = {
    "toasts": ("none",),
    "pages": ("plain",),
    "keyboard": ("none",),
    "choices": ("menu",),
    "goal_language": (SCREEN,),
}
"""What a seed draws from where nothing else is said."""
LEAST: Mapping[str, Mapping[int, tuple[int, int]]] = {
    "desktop": {100: (640, 480), 125: (640, 480), 150: (800, 600), 175: (896, 672), 200: (1024, 768)},
    "mobile": {100: (384, 704), 125: (384, 704), 150: (432, 800), 175: (512, 940), 200: (600, 1100)},
}
"""The screen (width, height) on which every task can be done at a scale, in the largest letters."""


def fitting_scales(form: str, size: tuple[int, int], among: Sequence[int]) -> list[int]:
    """Those of some scales at which every task can be done on a screen."""
    return [
        scale
        for scale in among
        if all(have >= need for have, need in zip(size, LEAST[form][scale], strict=True))
    ]


class Variation:
    """Draws the settings of a desktop's looks. Equal choices make equal variations, which draw the same."""

    def __init__(self, pins: Mapping[str, Any]) -> None:
        """Pin some of them.

        Args:
            pins: a key of CHOICES to one of its values, or to a list of those to draw from.

        Raises:
            ConfigError: for an unknown key or value.
        """
        self.choices = {**CHOICES, **UNLESS_ASKED}
        for key, given in pins.items():
            if key not in CHOICES:
                raise ConfigError(
                    f"gui/emu option {key!r} is unknown; what may be pinned: {', '.join(CHOICES)}"
                )
            values = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
            wrong = [value for value in values if value not in CHOICES[key]]
            if wrong or not values:
                known = ", ".join(map(str, CHOICES[key]))
                raise ConfigError(f"gui/emu option {key}={given!r}; choose from {known}")
            self.choices[key] = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variation) and self.choices == other.choices

    def __hash__(self) -> int:
        return hash(tuple(self.choices.items()))

    def draw(self, seed: int) -> dict[str, Any]:
        """The settings under a seed; what is pinned draws nothing from the others."""
        drawn = {}
        for key, values in self.choices.items():
            index = 0
            if len(values) > 1:
                index = int(np.random.default_rng(derive_seed("look", key, seed)).integers(len(values)))
            drawn[key] = values[index]
        return drawn
