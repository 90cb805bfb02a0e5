"""Like macOS: traffic lights, menus at the top of the screen, a floating dock."""

from __future__ import annotations

from vlrl.envs.gui.emu.app import APPS
from vlrl.envs.gui.emu.drawing.family import Family, Shape, TitleShape, register_family
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.theme import palette_from
from vlrl.envs.gui.emu.families.painters import DRAWS, PLACES
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.widgets.menus import MenuTitle
from vlrl.envs.gui.emu.windows import notices, wm
from vlrl.envs.gui.emu.windows.bars import BarLayer, BarPart, app_icons, dock_box, pinned_apps
from vlrl.envs.gui.emu.windows.shell import clock_text

DOCK, GAP, PINNED = 34, 4, 7
"""Thickness of the dock, its distance from the edge of the screen, and the apps that are always in it."""
LEAST_LINES = 25
"""Lines of text on a screen that has room for a dock below its windows."""


def panel_high(look: Look) -> int:
    """Height of the bar with the menus."""
    return look.line + look.scaled(6)


def margins(look: Look, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The menus above; the dock below, or at the left side: there, too, where few lines fit on the screen."""
    dock = look.scaled(DOCK) + 2 * look.scaled(GAP)
    is_at_side = look.bar_side == "left" or size[1] < LEAST_LINES * look.line
    left, below = (dock, 0) if is_at_side else (0, dock)
    return left, panel_high(look), 0, below


def bars(world: World, look: Look, menus: tuple[MenuTitle, ...]) -> list[BarLayer]:
    """The bar with the name and the menus of the app in front, and the dock."""
    time, count, front = clock_text(world), len(notices.here(world)), wm.front(world)
    name = tr(APPS[front.app].label if front is not None else "Files")
    panel = BarPart(id="panel", title=name, menus=menus, time=time, count=count)
    apps = app_icons(world, pinned_apps(PINNED))
    dock = BarPart(id="taskbar", apps=apps, start="first", mark="dot", tile=True)
    box = dock_box(world.size, margins(look, world.size), look.scaled(DOCK), look.scaled(GAP), len(apps) + 1)
    return [
        BarLayer("panel", (0, 0, world.size[0], panel_high(look)), panel),
        BarLayer("bar", box, dock, look.scaled(9)),
    ]


LIGHT = palette_from(
    "f2f2f4 1d1d1f 67676c d0d0d5 ffffff ffffff 007aff ffffff e9e8eb 3a3a3c f5f5f6 eef0f5 1d1d1f cfe3ff",
    "3f6fd0 f0b4c4",
    6,
)
DARK = palette_from(
    "2a2a2c f5f5f7 a8a8ad 4a4a4d 1f1f21 57575a 0a84ff ffffff 3a3a3d e8e8ed 2d2d2f 28282d f5f5f7 1f4370",
    "1a1f4a 7a4080",
    6,
)

AQUA = register_family(
    Family(
        "aqua",
        light=LIGHT,
        dark=DARK,
        shape=Shape(
            button="raised",
            field="ringed",
            radius=6,
            check_radius=4,
            knob="white",
            groove=4,
            tab="segment",
            arrow="updown",
            row="accent",
            menu="accent",
            scroll_bar=6,
            ring=2,
        ),
        title=TitleShape("lights", width=12, gap=7, margin=9, side="left", centred=True),
        row=1,
        title_high=4,
        draws=DRAWS,
        places=PLACES,
        margins=margins,
        bars=bars,
        corner="above",
        menus_on_top=True,
        radius=10,
        menu_radius=6,
        shadow=14,
    )
)
