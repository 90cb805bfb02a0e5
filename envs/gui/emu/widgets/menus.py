"""Menu bars and tool bars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.state import Box, MenuItem
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.envs.gui.emu.widgets.basic import Button, surface
from vlrl.envs.gui.emu.widgets.containers import Row

SEPARATOR = MenuItem("-")


@dataclass(slots=True, init=False)
class MenuTitle(Widget):
    """What opens a menu."""

    items: tuple[MenuItem, ...]
    role: ClassVar[str] = "menuitem"

    def __init__(self, id: str, name: str, items: tuple[MenuItem, ...]) -> None:
        """Say what it is called and what is in it."""
        Widget.__init__(self, id=id, name=name)
        self.items = items

    def natural(self, look: Look) -> tuple[int, int]:
        """The text's."""
        return look.width(self.name) + 2 * look.unit + 2, look.row

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The text."""
        look, behind = view.look, surface(view)
        values = (behind, behind, None, 0, self.name, look.font, look.palette.text)
        items.append((*box, clip, plate, values))


@dataclass(slots=True, init=False)
class MenuBar(Widget):
    """The menus of a window: (title, its items) each; behind one button where the look says so."""

    menus: tuple[MenuTitle, ...]
    role: ClassVar[str] = "menubar"
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True

    def __init__(self, *menus: tuple[str, str, tuple[MenuItem, ...]]) -> None:
        """Say what there is: (id, title, items) of each menu; the items' ids are the commands."""
        Widget.__init__(self, id="menubar")
        self.menus = tuple(MenuTitle(f"menu.{id}", title, items) for id, title, items in menus)

    def natural(self, look: Look) -> tuple[int, int]:
        """A row high, or nothing where they are at the top of the screen."""
        high = 0 if look.menus == "top" else look.row
        return sum(menu.measure(look)[0] for menu in self.menus), high

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The titles side by side, or the button."""
        view.add(self, box, clip)
        if view.look.menus == "top":
            return
        if view.look.menus == "button":
            items = tuple(MenuItem(menu.id, menu.name, items=menu.items) for menu in self.menus)
            button = MenuTitle("menu", "☰", items)
            button.place(view, (box[0], box[1], box[0] + view.look.row + 6, box[3] - 1), clip)
            return
        left = box[0]
        for menu in self.menus:
            right = left + menu.measure(view.look)[0]
            menu.place(view, (left, box[1], right, box[3] - 1), clip)
            left = right

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """What lies behind, and a line under it."""
        if view.look.menus == "top":
            return
        colours = view.look.palette
        line = (mix(colours.window, colours.border, 50),)
        items.append((box[0], box[3] - 1, box[2], box[3], clip, fill, line))

    def commands(self) -> Iterator[MenuItem]:
        """Every item, also of submenus."""
        for menu in self.menus:
            yield from _flat(menu.items)


def _flat(items: tuple[MenuItem, ...]) -> Iterator[MenuItem]:
    for item in items:
        if item.items:
            yield from _flat(item.items)
        else:
            yield item


class ToolBar(Row):
    """Buttons in a row under the menus, in the order that the look says."""

    __slots__ = ()

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Place the buttons as a row, backward where the look says so."""
        if view.look.tools == "backward":
            Row(*reversed(self.children), gap=self.gap, id=self.id).place(view, box, clip)
        else:
            Row.place(self, view, box, clip)


def tool_button(
    id: str, name: str, icon: str, *, enabled: bool = True, pressed: bool | None = None
) -> Button:
    """A button of which only the image is shown."""
    return Button(id, name, kind="tool", icon=icon, show_name=False, enabled=enabled, pressed=pressed)


def tool_bar(*tools: Widget | None) -> ToolBar:
    """Buttons in a row under the menus."""
    return ToolBar(*tools, gap=0, id="toolbar")
