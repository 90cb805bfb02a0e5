"""What a widget family is: its colours, its shapes, and who draws its widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from vlrl.envs.gui.emu.drawing.theme import PALETTES, Palette, mix

DARK_BELOW = 3 * 128
"""Sum of a window's three colours below which its theme is dark."""


class Shape(NamedTuple):
    """The forms of a family; lengths are pixels at font size 13.

    Attributes:
        button: a border with a darker foot, a raised plate, or a plate without a border.
        field: a focused field is underlined, or has a ring around it.
        radius: of buttons and fields.
        check_radius: of boxes to check.
        knob: of a slider: with a dot of the accent in it, or white.
        groove: thickness of a slider's groove.
        tab: the chosen one is underlined, a raised segment of one plate, or a tinted plate.
        arrow: the icon of a drop-down list.
        row: a selected row has a bar at its left, the accent's colour, or a tint.
        menu: a marked line of a menu, likewise.
        scroll_bar: thickness of a scroll bar's thumb.
        ring: thickness of the ring around what has the focus.
    """

    button: Literal["footed", "raised", "filled"]
    field: Literal["underlined", "ringed"]
    radius: int
    check_radius: int
    knob: Literal["dotted", "white"]
    groove: int
    tab: Literal["underlined", "segment", "tinted"]
    arrow: str
    row: Literal["bar", "accent", "tint"]
    menu: Literal["accent", "tint"]
    scroll_bar: int
    ring: int


class TitleShape(NamedTuple):
    """The title bar of a family; lengths are pixels at font size 13.

    Attributes:
        buttons: flat fields as high as the bar, traffic lights, or discs with a mark.
        width: of a button.
        gap: between buttons, and `margin` beside the outer ones.
        side: where the buttons are; "" where the look says.
        centred: whether the title is in the middle, without an icon.
    """

    buttons: Literal["flat", "lights", "discs"]
    width: int
    gap: int
    margin: int
    side: Literal["left", "right", ""]
    centred: bool


@dataclass(frozen=True, eq=False)
class Family:
    """A widget family; one without any of this draws as the widgets do by themselves.

    Attributes:
        name: what the option `widgets` calls it.
        light: its colours, and `dark` those under a dark theme; None for the theme's own. The accent and the
            wallpaper are the theme's, but for "daylight" and "midnight", under which all is the family's.
        shape: the forms of what `draws` has.
        title: the form of its title bars.
        row: pixels, at font size 13, by which rows are higher than the text asks for; `title_high` by which a
            title bar is higher than a row.
        draws: class of a widget → function that paints it, called as `Widget.paint` is.
        places: class → function that lays it out, called as `Widget.place` is: of a frame and of bars.
        margins: (look, size of the screen) → (left, top, right, bottom) pixels of a desktop kept for bars.
        bars: (world, look, menus of the window in front) → the bars of a desktop, each a
            `windows.bars.BarLayer`.
        menus_on_top: whether a bar has the menus of the window in front, and windows have none.
        corner: where notices are shown: right above, right below, in the middle above; "" beside the clock.
        radius: of a window's corners at font size 13, `menu_radius` of a menu's.
        shadow: pixels at font size 13 that a window's shadow reaches; a menu's reaches half as far.
    """

    name: str
    light: Palette | None = None
    dark: Palette | None = None
    shape: Shape | None = None
    title: TitleShape | None = None
    row: int = 0
    title_high: int = 2
    draws: Mapping[type, Callable[..., None]] = field(default_factory=dict)
    places: Mapping[type, Callable[..., None]] = field(default_factory=dict)
    margins: Callable[[Any, tuple[int, int]], tuple[int, int, int, int]] | None = None
    bars: Callable[[Any, Any, Any], Any] | None = None
    menus_on_top: bool = False
    corner: Literal["above", "below", "middle", ""] = ""
    radius: int = 0
    menu_radius: int = 0
    shadow: int = 0

    def palette(self, theme: str) -> Palette:
        """Its colours under a theme."""
        chosen = PALETTES[theme]
        own = self.dark if sum(chosen.window) < DARK_BELOW else self.light
        if own is None:
            return chosen
        if theme in ("daylight", "midnight"):
            return own
        return own._replace(
            accent=chosen.accent,
            accent_text=chosen.accent_text,
            selected=mix(own.field, chosen.accent, 18),
            wallpaper=chosen.wallpaper,
        )


CLASSIC = Family("classic")
FAMILIES: dict[str, Family] = {"classic": CLASSIC}
"""Every family by name; a family's module registers it."""


def register_family(family: Family) -> Family:
    """Make a family known."""
    FAMILIES[family.name] = family
    return family
