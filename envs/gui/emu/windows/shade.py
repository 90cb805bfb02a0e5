"""The toast of a notice, and the shade: the list of all notices and the quick settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from vlrl.envs.gui.emu.app import APPS
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.input.events import Command
from vlrl.envs.gui.emu.state import Box, World
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import Button, Column, Divider, Grid, Label, Row, Slider, Space
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, outline
from vlrl.envs.gui.emu.windows import notices, wm
from vlrl.envs.gui.emu.windows.notices import Notice
from vlrl.envs.gui.emu.windows.shell import time_text

add_words("""
Clear all = Alle löschen = Tout effacer = Borrar todo
No notifications = Keine Benachrichtigungen = Aucune notification = Sin notificaciones
Dismiss = Benachrichtigung schließen = Ignorer la notification = Descartar la notificación
Do not disturb = Nicht stören = Ne pas déranger = No molestar
""")
TOAST, SHADE = "toast", "shade"
CARD_LINES, TOAST_LINES, SHADE_LINES = 2, 20, 22
"""Lines of a card; the widths of a toast and of the shade on a desktop, in heights of a line."""


class Tile(NamedTuple):
    """A quick setting.

    Attributes:
        key: of the setting.
        name: in English.
        is_on: what a value of the setting means.
    """

    key: str
    name: str
    icon: str
    is_on: Callable[[Any], bool] = bool


TILES: Mapping[str, Tile] = {
    tile.key: tile
    for tile in (
        Tile("wifi", "Wi-Fi", "wifi"),
        Tile("bluetooth", "Bluetooth", "bluetooth"),
        Tile("notifications", "Do not disturb", "quiet", lambda value: not value),
        Tile("airplane", "Airplane mode", "plane"),
        Tile("night_light", "Night light", "moon"),
        Tile("muted", "Mute", "mute"),
    )
}
"""By the settings that they turn on and off."""
OFF_IN_FLIGHT = ("wifi", "bluetooth")
"""What airplane mode turns off."""


@dataclass(slots=True, kw_only=True)
class Card(Widget):
    """A notice: its app's icon, its title and time, its text; a click opens what it is about.

    Attributes:
        is_touch: whether it is dismissed by a finger, and has no button for that.
    """

    notice: Notice
    is_touch: bool
    role: ClassVar[str] = "listitem"
    fills_width: ClassVar[bool] = True

    def natural(self, look: Look) -> tuple[int, int]:
        """Two lines."""
        return 0, card_high(look)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The button at the right."""
        view.add(self, box, clip)
        if not self.is_touch:
            side, edge = view.look.line + 2, view.look.unit // 2
            at = (box[2] - edge - side, box[1] + edge, box[2] - edge, box[1] + edge + side)
            id = f"dismiss:{self.notice.number}"
            Button(id, tr("Dismiss"), kind="flat", icon="close", show_name=False).place(view, at, clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The plate and what is on it."""
        look, colours = view.look, view.look.palette
        unit, line, inside = look.unit, look.line, colours.window
        items.append((*box, clip, plate, (inside, inside, colours.border, look.scaled(4))))
        side = 3 * line // 2
        left, top = box[0] + unit, (box[1] + box[3] - side) // 2
        icon = APPS[self.notice.app].icon
        items.append((left, top, left + side, top + side, clip, icon_painter, (icon, colours.text, inside)))
        left, top = left + side + unit, box[1] + (box[3] - box[1] - CARD_LINES * line) // 2
        right = box[2] - unit - (0 if self.is_touch else line + unit)
        time = time_text(self.notice.time_ms)
        wide = look.width(time) + 2
        rows = (
            (left, top, right - wide - unit, self.name, look.bold, colours.text, "left"),
            (right - wide, top, right, time, look.font, colours.muted, "right"),
            (left, top + line, box[2] - unit, self.value, look.font, colours.text, "left"),
        )
        for x0, y0, x1, text, font, ink, align in rows:
            values = (inside, inside, None, 0, text, font, ink, align)
            items.append((x0, y0, max(x0, x1), y0 + line, clip, plate, values))

    @property
    def value(self) -> str:
        """The text."""
        return self.notice.text


@dataclass(slots=True, kw_only=True)
class TileButton(Widget):
    """A quick setting, filled with the accent where it is on."""

    tile: Tile
    is_on: bool
    role: ClassVar[str] = "switch"
    fills_width: ClassVar[bool] = True

    def natural(self, look: Look) -> tuple[int, int]:
        """The icon and the name; the height of a button."""
        return look.line + look.width(self.name) + 4 * look.unit, look.row

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The plate, the icon, the name."""
        look, colours = view.look, view.look.palette
        behind, side = colours.window, look.line
        inside = colours.accent if self.is_on else mix(behind, colours.text, 9)
        ink = colours.accent_text if self.is_on else colours.text
        items.append((*box, clip, plate, (behind, inside, None, look.scaled(6))))
        left, top = box[0] + look.unit, (box[1] + box[3] - side) // 2
        items.append((left, top, left + side, top + side, clip, icon_painter, (self.tile.icon, ink, inside)))
        left += side + look.unit
        values = (inside, inside, None, 0, self.name, look.font, ink, "left")
        items.append((left, box[1] + 2, box[2] - look.unit, box[3] - 2, clip, plate, values))

    def states(self, view: View) -> set[str]:
        """Whether it is on."""
        return {"checked"} if self.is_on else set()


class Shade(Column):
    """The sheet that the list and the quick settings are on."""

    __slots__ = ()

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The paper, and a line around it on a desktop."""
        colours = view.look.palette
        items.append((*box, clip, fill, (colours.window,)))
        if view.look.form != "mobile":
            outline(items, box, clip, colours.border)


def card(notice: Notice, look: Look) -> Card:
    """The card of a notice."""
    shown = Card(
        id=f"notice:{notice.number}", name=notice.title, notice=notice, is_touch=look.form == "mobile"
    )
    shown.press = Command(shown.id)
    return shown


def card_high(look: Look) -> int:
    """Height of a card."""
    return CARD_LINES * look.line + 3 * look.unit // 2


def toast_box(world: World, look: Look) -> Box:
    """Where a toast is: in the corner of the bar with the clock, or across a phone."""
    wide = TOAST_LINES * look.line
    return _at_corner(world, look, (wide, card_high(look)), 2 * look.unit)


def shade(world: World, look: Look) -> tuple[Box, Shade]:
    """Where the shade is and what is on it: as many notices as there is room for, from one on."""
    area, found, count = wm.work_area(world), notices.here(world), fitting(world, look)
    first = min(world.shade or 0, len(found) - count)
    sheet = _sheet(world, look, first, count)
    if look.form == "mobile":
        return area, sheet
    wide, high = sheet.measure(look)
    return _at_corner(world, look, (max(SHADE_LINES * look.line, wide), high), look.unit), sheet


def fitting(world: World, look: Look) -> int:
    """How many notices of the list there is room for; one at least, if there is one."""
    area, found = wm.work_area(world), notices.here(world)
    room = area[3] - area[1] - 2 * look.unit - _sheet(world, look, 0, 0).measure(look)[1]
    return min(len(found), max(1, room // (card_high(look) + look.unit)))


def scrolled(world: World, look: Look, pixels: int, within_page: bool = False) -> World:
    """The list scrolled by some pixels, rounded to whole notices, or by at most those that are seen."""
    count = fitting(world, look)
    last = len(notices.here(world)) - count
    step = max(1, (abs(pixels) + card_high(look) // 2) // card_high(look))
    step = min(step, count) if within_page else step
    first = min(world.shade or 0, last) + (step if pixels > 0 else -step)
    return world._replace(shade=min(max(0, first), last))


def _sheet(world: World, look: Look, first: int, count: int) -> Shade:
    """The list and the quick settings; a phone has these above the list."""
    tiles = Grid(2, *(_tile(tile, world) for tile in TILES.values()), gap=1)
    light = Slider("brightness", tr("Brightness"), world.settings["brightness"], step=5, grow=1)
    quick: list[Widget] = [tiles, Row(Label(tr("Brightness")), light, gap=2)]
    found = notices.here(world)
    cut = f"{first + 1} – {first + count} / {len(found)}" if count < len(found) else ""
    head = Row(
        Label(tr("Notifications"), "bold"),
        Label(cut, "muted", grow=1),
        Button("clear", tr("Clear all"), kind="flat", enabled=bool(found)),
        gap=2,
    )
    cards: list[Widget] = [card(notice, look) for notice in found[first : first + count]]
    if not found:
        cards = [Label(tr("No notifications"), "muted")]
    listed, is_touch = [head, *cards], look.form == "mobile"
    parts = [*quick, Divider(), *listed, Space()] if is_touch else [*listed, Divider(), *quick]
    return Shade(*parts, pad=2, gap=1, id="shade", name=tr("Notifications"))


def _tile(tile: Tile, world: World) -> TileButton:
    is_on = tile.is_on(world.settings[tile.key])
    shown = TileButton(id=f"tile:{tile.key}", name=tr(tile.name), tile=tile, is_on=is_on)
    shown.press = Command(shown.id)
    return shown


def _at_corner(world: World, look: Look, size: tuple[int, int], gap: int) -> Box:
    """A box of at most some size, at the corner where the look has its notices."""
    x0, y0, x1, y1 = wm.work_area(world)
    side = look.family.corner or {"top": "above", "left": "beside"}.get(look.bar_side, "below")
    wide, high = min(size[0], x1 - x0 - 2 * gap), min(size[1], y1 - y0 - 2 * gap)
    left, top = x1 - gap - wide, y1 - gap - high
    if look.form == "mobile":
        return x0 + gap, y0 + gap, x1 - gap, y0 + gap + high
    if side in ("above", "middle"):
        top = y0 + gap
    if side == "middle":
        left = (world.size[0] - wide) // 2
    elif side == "beside":
        left = x0 + gap
    return left, top, left + wide, top + high
