"""The desktop itself: the wallpaper and its icons, the task bar, and what a phone has instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import APPS, app_for
from vlrl.envs.gui.emu.drawing.icons import emblem
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import caption, dot, fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.drawing.wallpaper import wallpaper
from vlrl.envs.gui.emu.input.events import Command
from vlrl.envs.gui.emu.state import Box, MenuItem, World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.envs.gui.emu.windows import notices, wm

MINUTES_A_DAY = 24 * 60
SHOWN_APPS = 4
"""Icons of apps with notices at the top of a phone."""


def listed(form: str = "desktop") -> list[str]:
    """The apps of the start menu, or of a phone's home screen."""
    return [app.name for app in APPS.values() if app.is_listed and form in app.forms]


def start_menu() -> tuple[MenuItem, ...]:
    """What the start menu shows; each id is "app:" and the app's name."""
    return tuple(MenuItem(f"app:{name}", tr(APPS[name].label)) for name in listed())


def time_text(time_ms: int) -> str:
    """Hours and minutes of a time."""
    hours, minutes = divmod(time_ms // 60_000 % MINUTES_A_DAY, 60)
    return f"{hours:02d}:{minutes:02d}"


def clock_text(world: World) -> str:
    """Hours and minutes of the virtual clock."""
    return time_text(world.time_ms)


@dataclass(slots=True, kw_only=True)
class Backdrop(Widget):
    """The wallpaper with an icon for each app (a phone) or each of the few things of a desktop."""

    world: World
    role: ClassVar[str] = ""

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Icons in a grid."""
        view.add(self, box, clip)
        look, area = view.look, wm.work_area(self.world)
        high = 3 * look.line + 4 * look.unit
        if look.form == "mobile":
            across = max(3, (area[2] - area[0]) // (6 * look.line))
            wide = (area[2] - area[0]) // across
            for index, name in enumerate(listed("mobile")):
                row, column = divmod(index, across)
                left, top = area[0] + column * wide, area[1] + 2 * look.unit + row * (high + look.unit)
                self._icon(
                    f"app:{name}", tr(APPS[name].label), APPS[name].icon, (left, top, wide, high), view
                )
            return
        wide, top, left = 5 * look.line, area[1] + look.unit, area[0] + look.unit
        for path in files.listing(self.world.files, "/Desktop"):
            if top + high > area[3]:
                left, top = left + wide, area[1] + look.unit
            is_folder = files.is_folder(self.world.files, path)
            app = app_for(path)
            image = (
                "folder" if is_folder else "text" if app == "editor" else APPS[app].icon if app else "file"
            )
            self._icon(f"file:{path}", files.base(path), image, (left, top, wide, high), view)
            top += high

    def _icon(self, id: str, name: str, icon: str, at: Box, view: View) -> None:
        left, top, wide, high = at
        shown = DesktopIcon(id=id, name=name, icon=icon)
        shown.twice = Command(id)
        shown.press = Command(id) if view.look.form == "mobile" else None
        shown.place(view, (left, top, left + wide, top + high), (0, 0, *self.world.size))

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The wallpaper."""
        colours = view.look.palette.wallpaper
        items.append((*box, clip, wallpaper, (view.look.wallpaper, *colours)))


@dataclass(slots=True, kw_only=True)
class DesktopIcon(Widget):
    """An image with a name under it."""

    icon: str
    role: ClassVar[str] = "listitem"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """Both, on the wallpaper."""
        look = view.look
        side, unit = 2 * look.line, look.unit
        left, top = (box[0] + box[2] - side) // 2, box[1] + unit
        white, dark = (255, 255, 255), (20, 24, 32)
        items.append((left, top, left + side, top + side, clip, emblem, (self.icon, white)))
        under = (box[0] + 2, top + side + unit // 2, box[2] - 2, top + side + unit // 2 + look.line + 2)
        items.append((*under, clip, caption, (self.name, look.font, white, dark)))


@dataclass(slots=True, kw_only=True)
class Bar(Widget):
    """The task bar: the start button, a button for every window, the clock."""

    world: World
    role: ClassVar[str] = "toolbar"

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Side by side, or one under the other at the left side."""
        view.add(self, box, clip)
        look, upright = view.look, view.look.bar_side == "left"
        edge = look.unit // 2
        side = (box[3] - box[1]) - 2 * edge if not upright else look.row
        at = edge
        start = BarButton(id="start", name=tr("Apps"), icon="apps", is_open=False, shows_name=False)
        across = (box[2] - box[0]) if upright else side + look.unit
        start.place(view, _piece(box, at, side if upright else across, edge, upright), clip)
        at += (side if upright else across) + look.unit
        front = wm.front(self.world)
        roots = sorted((w for w in self.world.windows if not w.parent), key=lambda w: w.number)
        clock = look.width("00:00") + 2 * look.unit
        room = (box[3] - box[1] - at - side) if upright else (box[2] - box[0] - at - clock)
        longest = side if upright else 9 * look.line
        length = min(longest, room // max(1, len(roots)) - 2)
        for window in roots:
            app = APPS[window.app]
            button = BarButton(
                id=f"task:{window.number}",
                name=app.title_of(window.state),
                icon=app.icon,
                is_open=front is not None and wm.top_of(self.world, front.number) == window.number,
                shows_name=not upright,
            )
            button.place(view, _piece(box, at, length, edge, upright), clip)
            at += length + 2
        last = (box[0], box[3] - side, *box[2:]) if upright else (box[2] - clock, *box[1:])
        count = len(notices.here(self.world))
        Clock(id="clock", name=clock_text(self.world), count=count).place(view, last, clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The bar."""
        items.append((*box, clip, fill, (view.look.palette.bar,)))


def _piece(box: Box, at: int, length: int, edge: int, upright: bool) -> Box:
    if upright:
        return box[0] + edge, box[1] + at, box[2] - edge, box[1] + at + length
    return box[0] + at, box[1] + edge, box[0] + at + length, box[3] - edge


@dataclass(slots=True, kw_only=True)
class BarButton(Widget):
    """The start button, or the button of a window."""

    icon: str
    is_open: bool
    shows_name: bool
    role: ClassVar[str] = "button"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """Icon and title; the window in front stands out."""
        look, colours = view.look, view.look.palette
        inside = mix(colours.bar, colours.bar_text, 22 if self.is_open else 8)
        items.append((*box, clip, plate, (colours.bar, inside, None, min(4, colours.round))))
        side = min(look.line, box[3] - box[1] - 2)
        left = box[0] + look.unit if self.shows_name else (box[0] + box[2] - side) // 2
        top = (box[1] + box[3] - side) // 2
        values = (self.icon, colours.bar_text, inside)
        items.append((left, top, left + side, top + side, clip, icon_painter, values))
        right = box[2] - 2
        if self.shows_name and right > left + side + look.unit:
            text = (inside, inside, None, 0, self.name, look.font, colours.bar_text, "left")
            items.append((left + side + look.unit, box[1] + 1, right, box[3] - 1, clip, plate, text))
        if self.is_open:
            items.append((box[0] + 2, box[3] - 2, box[2] - 2, box[3], clip, fill, (colours.accent,)))

    def states(self, view: View) -> set[str]:
        """Whether its window is in front."""
        return {"selected"} if self.is_open else set()


@dataclass(slots=True, kw_only=True)
class Clock(Widget):
    """The time of day, with a dot while there are notices; a click shows them.

    Attributes:
        count: of notices.
    """

    count: int = 0
    role: ClassVar[str] = "timer"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The digits and the dot."""
        look, colours = view.look, view.look.palette
        values = (colours.bar, colours.bar, None, 0, self.name, look.font, colours.bar_text)
        items.append((*box, clip, plate, values))
        if self.count:
            side = 2 * look.scaled(2)
            left, top = box[2] - (look.unit + side) // 2, (box[1] + box[3] - side) // 2
            items.append((left, top, left + side, top + side, clip, dot, (colours.accent,)))

    @property
    def value(self) -> str:
        """How many notices there are."""
        return f"{self.count} {tr('Notifications')}" if self.count else ""


@dataclass(slots=True, kw_only=True)
class StatusBar(Widget):
    """The top of a phone's screen."""

    world: World

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The clock at the left."""
        view.add(self, box, clip)
        wide = view.look.width("00:00") + 4 * view.look.unit
        Clock(id="clock", name=clock_text(self.world)).place(view, (0, 0, wide, box[3]), clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The bar, the battery, and an icon of each app that has notices."""
        colours, side = view.look.palette, view.look.line
        items.append((*box, clip, fill, (colours.bar,)))
        left = view.look.width("00:00") + 4 * view.look.unit
        apps = tuple(dict.fromkeys(notice.app for notice in notices.here(self.world)))
        for app in apps[:SHOWN_APPS]:
            icon = (APPS[app].icon, colours.bar_text, colours.bar)
            items.append((left, 3, left + side, 3 + side, clip, icon_painter, icon))
            left += side + view.look.unit
        at = (box[2] - side - view.look.unit, 3, box[2] - view.look.unit, 3 + side)
        items.append((*at, clip, icon_painter, ("battery", colours.bar_text, colours.bar)))


@dataclass(slots=True, kw_only=True)
class NavigationBar(Widget):
    """The bottom of a phone's screen: back and home."""

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Two buttons."""
        view.add(self, box, clip)
        third = (box[2] - box[0]) // 3
        for index, (id, name) in enumerate((("back", "Back"), ("home", "Home"))):
            middle = third * (index + 1)
            button = BarButton(id=f"system.{id}", name=tr(name), icon=id, is_open=False, shows_name=False)
            button.place(view, (middle - 32, box[1] + 3, middle + 32, box[3] - 3), clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The bar."""
        items.append((*box, clip, fill, (view.look.palette.bar,)))


def bar_box(look: Look, size: tuple[int, int]) -> Box:
    """Where the task bar is, or a phone's buttons."""
    width, height = size
    if look.form == "mobile" or look.bar_side == "bottom":
        return 0, height - wm.bar_size(look), width, height
    if look.bar_side == "top":
        return 0, 0, width, wm.bar_size(look)
    return 0, 0, wm.side_bar_width(look), height
