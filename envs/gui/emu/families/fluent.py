"""Like Windows 11: flat title buttons at the right, underlined fields, icons in the middle of a bar below."""

from __future__ import annotations

from vlrl.envs.gui.emu.drawing.family import Family, Shape, TitleShape, register_family
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.theme import palette_from
from vlrl.envs.gui.emu.families.painters import DRAWS, PLACES
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.widgets.menus import MenuTitle
from vlrl.envs.gui.emu.windows import notices
from vlrl.envs.gui.emu.windows.bars import BarLayer, BarPart, app_icons, pinned_apps
from vlrl.envs.gui.emu.windows.shell import clock_text

BAR_HIGH, PINNED = 34, 4


def bar_high(look: Look, size: tuple[int, int]) -> int:
    """Height of the bar; less in large letters on a low screen, where windows need the room."""
    return min(look.scaled(BAR_HIGH), max(look.row, size[1] // 14))


def margins(look: Look, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The bar is always below."""
    return 0, 0, 0, bar_high(look, size)


def bars(world: World, look: Look, menus: tuple[MenuTitle, ...]) -> list[BarLayer]:
    """One bar, as wide as the screen."""
    (width, height), time, count = world.size, clock_text(world), len(notices.here(world))
    apps = app_icons(world, pinned_apps(PINNED))
    bar = BarPart(id="taskbar", apps=apps, time=time, count=count, start="first", is_centred=True)
    return [BarLayer("bar", (0, height - bar_high(look, world.size), width, height), bar)]


LIGHT = palette_from(
    "f3f3f3 1b1b1b 5f5f5f d9d9d9 ffffff fdfdfd 005fb8 ffffff f3f3f3 1b1b1b f3f3f3 e6ebf3 1b1b1b dbe9f6",
    "2f6ac4 a9cdf2",
    4,
)
DARK = palette_from(
    "202020 ffffff c5c5c5 3d3d3d 2b2b2b 373737 4cc2ff 000000 202020 ffffff 202020 1c2230 ffffff 2f4a5c",
    "0b1a3a 2458a8",
    4,
)

FLUENT = register_family(
    Family(
        "fluent",
        light=LIGHT,
        dark=DARK,
        shape=Shape(
            button="footed",
            field="underlined",
            radius=4,
            check_radius=3,
            knob="dotted",
            groove=4,
            tab="underlined",
            arrow="chevron",
            row="bar",
            menu="tint",
            scroll_bar=4,
            ring=2,
        ),
        title=TitleShape("flat", width=34, gap=0, margin=0, side="right", centred=False),
        row=1,
        title_high=4,
        draws=DRAWS,
        places=PLACES,
        margins=margins,
        bars=bars,
        corner="below",
        radius=8,
        menu_radius=7,
        shadow=10,
    )
)
