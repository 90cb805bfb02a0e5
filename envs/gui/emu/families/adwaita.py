"""Like GNOME: header bars with round buttons, a black panel with the clock in its middle, a dash."""

from __future__ import annotations

from vlrl.envs.gui.emu.drawing.family import Family, Shape, TitleShape, register_family
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.theme import palette_from
from vlrl.envs.gui.emu.families.painters import DRAWS, PLACES
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets.menus import MenuTitle
from vlrl.envs.gui.emu.windows import notices
from vlrl.envs.gui.emu.windows.bars import BarLayer, BarPart, app_icons, dock_box, pinned_apps
from vlrl.envs.gui.emu.windows.shell import clock_text

DASH, GAP, PINNED = 34, 3, 6
"""Thickness of the dash, its distance from the edge of the screen, and the apps that are always in it."""
add_words("Activities = Aktivitäten = Activités = Actividades")


def panel_high(look: Look) -> int:
    """Height of the panel."""
    return look.line + look.scaled(5)


def margins(look: Look, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The panel above, the dash at the left side, as Ubuntu has it."""
    return look.scaled(DASH) + 2 * look.scaled(GAP), panel_high(look), 0, 0


def bars(world: World, look: Look, menus: tuple[MenuTitle, ...]) -> list[BarLayer]:
    """The panel and the dash."""
    time, count = clock_text(world), len(notices.here(world))
    panel = BarPart(
        id="panel", title=tr("Activities"), start="title", time=time, count=count, is_centred=True
    )
    apps = app_icons(world, pinned_apps(PINNED))
    dash = BarPart(id="taskbar", apps=apps, mark="dot")
    box = dock_box(world.size, margins(look, world.size), look.scaled(DASH), look.scaled(GAP), len(apps))
    return [
        BarLayer("panel", (0, 0, world.size[0], panel_high(look)), panel),
        BarLayer("bar", box, dash, look.scaled(10)),
    ]


LIGHT = palette_from(
    "fafafb 2f2f34 67676d d8d8dc ffffff e6e6e9 3584e4 ffffff ebebed 2e2e33 fafafb 131316 ffffff cfe1f8",
    "241f5c 62a0ea",
    6,
)
DARK = palette_from(
    "222226 f6f6f7 b5b5ba 45454b 1c1c1f 3e3e44 3584e4 ffffff 2e2e32 ffffff 222226 0b0b0d ffffff 24405f",
    "120f33 3a4f8a",
    6,
)

ADWAITA = register_family(
    Family(
        "adwaita",
        light=LIGHT,
        dark=DARK,
        shape=Shape(
            button="filled",
            field="ringed",
            radius=6,
            check_radius=4,
            knob="white",
            groove=6,
            tab="tinted",
            arrow="chevron",
            row="tint",
            menu="tint",
            scroll_bar=6,
            ring=2,
        ),
        title=TitleShape("discs", width=20, gap=8, margin=8, side="", centred=True),
        row=1,
        title_high=5,
        draws=DRAWS,
        places=PLACES,
        margins=margins,
        bars=bars,
        corner="middle",
        radius=12,
        menu_radius=10,
        shadow=12,
    )
)
