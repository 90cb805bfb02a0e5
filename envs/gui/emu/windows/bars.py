"""What the bars of a widget family are made of: icons of apps, a tray, the menus of the window in front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from vlrl.envs.gui.emu.app import APPS
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.state import Box, Window, World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.envs.gui.emu.widgets.menus import MenuTitle
from vlrl.envs.gui.emu.windows import wm
from vlrl.envs.gui.emu.windows.shell import Clock, listed

TRAY = {"wifi": "Wi-Fi", "volume": "Volume", "battery": "Battery"}
"""Icon → what it is called."""


class BarLayer(NamedTuple):
    """A bar of a desktop.

    Attributes:
        key: "bar" of the one with the windows' buttons, "panel" of another.
        box: on the screen.
        widget: that is laid out in it.
        radius: of its corners.
    """

    key: str
    box: Box
    widget: Widget
    radius: int = 0


class AppIcon(NamedTuple):
    """An app, or one of its windows, in a bar."""

    id: str
    name: str
    icon: str
    state: Literal["", "open", "front"]


def app_icons(world: World, pinned: tuple[str, ...]) -> tuple[AppIcon, ...]:
    """The pinned apps, each as its first window where it has one, then all other windows."""
    front = wm.front(world)
    top = wm.top_of(world, front.number) if front is not None else 0
    roots = sorted((w for w in world.windows if not w.parent), key=lambda window: window.number)
    found: list[AppIcon] = []
    for name in pinned:
        first = next((window for window in roots if window.app == name), None)
        if first is None:
            found.append(AppIcon(f"app:{name}", tr(APPS[name].label), APPS[name].icon, ""))
        else:
            roots.remove(first)
            found.append(_of_window(first, top))
    return (*found, *(_of_window(window, top) for window in roots))


def _of_window(window: Window, top: int) -> AppIcon:
    app = APPS[window.app]
    state: Literal["open", "front"] = "front" if window.number == top else "open"
    return AppIcon(f"task:{window.number}", app.title_of(window.state), app.icon, state)


def pinned_apps(most: int) -> tuple[str, ...]:
    """The first apps of the start menu."""
    return tuple(listed()[:most])


@dataclass(slots=True, kw_only=True)
class AppButton(Widget):
    """An app in a bar.

    Attributes:
        app: what it stands for.
        mark: how an open window shows: a line, or a dot.
        tile: whether the image lies on a light tile with round corners.
        is_upright: whether the bar is, whose mark is then at the left.
    """

    app: AppIcon
    mark: Literal["line", "dot"]
    tile: bool = False
    is_upright: bool = False
    role: ClassVar[str] = "button"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The image, and the mark of an open window."""
        look, colours, behind = view.look, view.look.palette, bar_colour(view.look, self.tile)
        wide, high = box[2] - box[0], box[3] - box[1]
        inside = mix(behind, colours.bar_text, 12) if self.app.state == "front" and not self.tile else behind
        items.append((*box, clip, plate, (behind, inside, None, look.scaled(4))))
        side = min(wide, high) * (4 if self.tile else 3) // 5
        left, top = (box[0] + box[2] - side) // 2, (box[1] + box[3] - side) // 2
        at = (left, top, left + side, top + side)
        if self.tile:
            paper = (246, 247, 250)
            items.append((*at, clip, plate, (inside, paper, None, side * 2 // 9)))
            edge = side // 6
            at, inside = (left + edge, top + edge, left + side - edge, top + side - edge), paper
            items.append((*at, clip, icon_painter, (self.app.icon, (70, 76, 88), paper)))
        else:
            items.append((*at, clip, icon_painter, (self.app.icon, colours.bar_text, inside)))
        if self.app.state:
            items.append((*self._mark_box(box, look), clip, plate, self._mark_values(view, behind)))

    def _mark_box(self, box: Box, look: Look) -> Box:
        thick, long = look.scaled(3), look.scaled(3)
        if self.mark == "line":
            long = look.scaled(14 if self.app.state == "front" else 6)
        x, y = (box[0] + box[2] - long) // 2, (box[1] + box[3] - long) // 2
        if self.is_upright:
            return box[0], y, box[0] + thick, y + long
        return x, box[3] - thick, x + long, box[3]

    def _mark_values(self, view: View, behind: tuple[int, int, int]) -> tuple[object, ...]:
        colours = view.look.palette
        is_accent = self.app.state == "front" and self.mark == "line"
        return behind, colours.accent if is_accent else mix(behind, colours.bar_text, 70), None, 1

    def states(self, view: View) -> set[str]:
        """Whether its window is in front."""
        return {"selected"} if self.app.state == "front" else set()


@dataclass(slots=True, kw_only=True)
class TrayIcon(Widget):
    """An image of the tray."""

    icon: str
    role: ClassVar[str] = "img"
    is_solid: ClassVar[bool] = False

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The image on the bar."""
        colours = view.look.palette
        items.append((*box, clip, icon_painter, (self.icon, colours.bar_text, colours.bar)))


@dataclass(slots=True, kw_only=True)
class Words(Widget):
    """A word on a bar, bold or not, that does what its id says."""

    is_bold: bool = False
    role: ClassVar[str] = "button"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The word."""
        look, colours = view.look, view.look.palette
        font = look.bold if self.is_bold else look.font
        values = (colours.bar, colours.bar, None, 0, self.name, font, colours.bar_text)
        items.append((*box, clip, plate, values))


@dataclass(slots=True, kw_only=True)
class BarPart(Widget):
    """A bar: a start button and icons of apps in a row, a tray and a clock, menus; what it is given of these.

    Attributes:
        apps: from left to right, or from the top to the bottom.
        time: what the clock shows; "" for no clock, and no tray.
        count: of notices, told by the clock.
        menus: of the window in front.
        title: a word at the left; with `start` it opens the start menu.
        start: "first" or "last" among the icons, "title", or "" for none.
        is_centred: whether the icons are in the middle, and the clock otherwise.
        mark: of an open app, and `tile` behind its image.
    """

    apps: tuple[AppIcon, ...] = ()
    time: str = ""
    count: int = 0
    menus: tuple[MenuTitle, ...] = ()
    title: str = ""
    start: Literal["first", "last", "title", ""] = ""
    is_centred: bool = False
    mark: Literal["line", "dot"] = "line"
    tile: bool = False
    role: ClassVar[str] = "toolbar"

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Put everything beside one another."""
        view.add(self, box, clip)
        right = self._place_time(view, box, clip) if self.time else box[2]
        if self.title or self.menus:
            self._place_words(view, box, clip)
        starter = AppIcon("start", tr("Apps"), "apps", "")
        icons = self.apps
        if self.start in ("first", "last"):
            icons = (starter, *icons) if self.start == "first" else (*icons, starter)
        if icons:
            self._place_icons(icons, view, (*box[:2], right, box[3]), box, clip)

    def _place_icons(self, icons: tuple[AppIcon, ...], view: View, room: Box, whole: Box, clip: Box) -> None:
        upright = whole[3] - whole[1] > whole[2] - whole[0]
        edge = view.look.scaled(2)
        thick = (whole[2] - whole[0] if upright else whole[3] - whole[1]) - 2 * edge
        length = room[3] - room[1] if upright else room[2] - room[0]
        step = min(thick + edge, (length - 2 * edge) // len(icons))
        begin = max(edge, (length - step * len(icons)) // 2)
        if self.is_centred:  # in the middle of the bar, as far as the tray leaves room
            begin = max(edge, min((whole[2] - whole[0] - step * len(icons)) // 2, length - step * len(icons)))
        for index, app in enumerate(icons):
            at = begin + index * step
            across = (edge, at, edge + thick, at + step - edge), (at, edge, at + step - edge, edge + thick)
            x0, y0, x1, y1 = across[0 if upright else 1]
            button = AppButton(
                id=app.id, name=app.name, app=app, mark=self.mark, tile=self.tile, is_upright=upright
            )
            placed = (whole[0] + x0, whole[1] + y0, whole[0] + x1, whole[1] + y1)
            button.place(view, placed, clip)

    def _place_time(self, view: View, box: Box, clip: Box) -> int:
        look, side = view.look, view.look.line
        wide = look.width("00:00") + 2 * look.unit
        right = box[2]
        clock = Clock(id="clock", name=self.time, count=self.count)
        if self.is_centred and not self.apps:
            middle = (box[0] + box[2] - wide) // 2
            clock.place(view, (middle, box[1], middle + wide, box[3]), clip)
        else:
            clock.place(view, (right - wide, box[1], right, box[3]), clip)
            right -= wide
        top = (box[1] + box[3] - side) // 2
        for icon in reversed(TRAY):
            right -= side + look.unit
            TrayIcon(icon=icon, name=tr(TRAY[icon])).place(view, (right, top, right + side, top + side), clip)
        return right - look.unit

    def _place_words(self, view: View, box: Box, clip: Box) -> None:
        look, left = view.look, box[0] + view.look.unit
        if self.title:
            id = "start" if self.start == "title" else ""
            word = Words(id=id, name=self.title, is_bold=True)
            right = left + look.width(self.title) * 9 // 8 + 2 * look.unit
            word.place(view, (left, box[1], right, box[3]), clip)
            left = right
        for menu in self.menus:
            right = left + menu.measure(look)[0]
            menu.place(view, (left, box[1], right, box[3]), clip)
            left = right

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The bar."""
        items.append((*box, clip, fill, (bar_colour(view.look, self.tile),)))


def bar_colour(look: Look, has_tiles: bool) -> Colour:
    """Colour of a bar; one with tiles lets some of the wallpaper through."""
    colours = look.palette
    return mix(colours.bar, colours.wallpaper[0], 30) if has_tiles else colours.bar


def dock_box(
    size: tuple[int, int], margins: tuple[int, int, int, int], thick: int, gap: int, count: int
) -> Box:
    """A floating bar for so many icons, in the middle of the left margin or of the lower one.

    Args:
        size: (width, height) of the screen.
        margins: (left, top, right, bottom) pixels kept for bars.
        thick: of the bar, in pixels.
        gap: between the bar and the edge of the screen.
        count: icons.
    """
    (width, height), (left, top, _, _) = size, margins
    if left:
        long = min(count * thick, height - top - 2 * gap)
        y = (top + height - long) // 2
        return gap, y, gap + thick, y + long
    long = min(count * thick, width - 2 * gap)
    x = (width - long) // 2
    return x, height - gap - thick, x + long, height - gap
