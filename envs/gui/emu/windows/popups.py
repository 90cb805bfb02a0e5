"""Open menus: where their levels are, and what is under a place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.state import Box, MenuItem, Popup
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.envs.gui.emu.windows import wm


@dataclass(slots=True, kw_only=True)
class Menu(Widget):
    """One level of an open menu; `marked` is the line under the pointer, -1 for none.

    Attributes:
        columns: in which the lines are, more than one where they are higher than the screen.
        room: pixels above the lines of a sheet; 0 of a menu that is none.
    """

    items: tuple[MenuItem, ...]
    kind: str
    depth: int
    marked: int
    columns: int = 1
    room: int = 0
    role: ClassVar[str] = "menu"

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The lines."""
        view.add(self, box, clip)
        top, left, wide = box[1] + 3 + self.room, box[0] + 3, (box[2] - box[0] - 6) // self.columns
        more = 0
        if self.room:
            middle, half = (box[0] + box[2]) // 2, view.look.line
            Handle().place(view, (middle - half, box[1] + 6, middle + half, box[1] + 10), clip)
            more = view.look.unit
        for index, item in enumerate(self.items):
            if index and index % _rows(self.items, self.columns) == 0:
                top, left = box[1] + 3, left + wide
            high = line_height(item, view.look) + more
            line = MenuLine(self, index, item)
            line.place(view, (left, top, left + wide, top + high), clip)
            top += high

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The paper."""
        colours = view.look.palette
        items.append((*box, clip, plate, (colours.border, colours.field, colours.border, 0)))


@dataclass(slots=True)
class Handle(Widget):
    """What a sheet is pulled by."""

    is_solid: ClassVar[bool] = False

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """A short thick line."""
        colours = view.look.palette
        items.append((*box, clip, plate, (colours.field, mix(colours.field, colours.muted, 60), None, 2)))


@dataclass(slots=True, init=False)
class MenuLine(Widget):
    """A line of a menu."""

    owner: Menu
    index: int
    item: MenuItem

    def __init__(self, owner: Menu, index: int, item: MenuItem) -> None:
        """Make a line of an open menu."""
        Widget.__init__(self, id=item.id, name=item.label, enabled=item.enabled)
        self.owner, self.index, self.item = owner, index, item

    @property
    def role(self) -> str:  # type: ignore[override]
        """ARIA's word for its kind."""
        if self.item.id == "-":
            return "separator"
        if self.owner.kind == "choice":
            return "option"
        return "menuitem" if self.item.checked is None else "menuitemcheckbox"

    @property
    def value(self) -> str:
        """The shortcut."""
        return self.item.keys

    def states(self, view: View) -> set[str]:
        """Checked, disabled."""
        found = set() if self.enabled else {"disabled"}
        return found | ({"checked"} if self.item.checked else set())

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """Its mark, its text, its shortcut."""
        colours = view.look.palette
        if self.item.id == "-":
            middle = (box[1] + box[3]) // 2
            items.append((box[0] + 2, middle, box[2] - 2, middle + 1, clip, fill, (colours.border,)))
            return
        inside = colours.accent if self.is_marked else colours.field
        ink = colours.accent_text if self.is_marked else colours.text if self.enabled else colours.muted
        items.append((*box, clip, fill, (inside,)))
        self.paint_text(items, box, clip, view, inside, ink)

    @property
    def is_marked(self) -> bool:
        """Whether the pointer or the keyboard's mark is on it."""
        return self.index == self.owner.marked and self.enabled

    def paint_text(
        self, items: list[Item], box: Box, clip: Box, view: View, inside: Colour, ink: Colour
    ) -> None:
        """What is on the line, which is painted in one colour."""
        look, item = view.look, self.item
        left, side = box[0] + look.unit, look.line
        if item.checked is not None:
            mark = (inside, inside, None, 0, "✓" if item.checked else "", look.font, ink)
            items.append((left, box[1] + 1, left + side, box[3] - 1, clip, plate, mark))
        left += side if any(other.checked is not None for other in self.owner.items) else 0
        text = (inside, inside, None, 0, item.label, look.font, ink, "left")
        items.append((left, box[1] + 1, box[2] - look.unit, box[3] - 1, clip, plate, text))
        right = "▸" if item.items else shown_keys(item.keys)
        if right:
            start = box[2] - look.unit - look.width(right) - 1
            faint = ink if self.is_marked else look.palette.muted
            text = (inside, inside, None, 0, right, look.font, faint, "left")
            items.append((start, box[1] + 1, box[2] - 2, box[3] - 1, clip, plate, text))


def shown_keys(keys: str) -> str:
    """A shortcut as a menu writes it: "Ctrl+S"."""
    return "+".join(part.capitalize() for part in keys.split("+")) if keys else ""


def line_height(item: MenuItem, look: Look) -> int:
    """Height of a line of a menu."""
    return look.unit + 1 if item.id == "-" else look.row - 2


def levels(popup: Popup, look: Look, size: tuple[int, int], is_sheet: bool = False) -> list[tuple[Box, Menu]]:
    """Where every open level is, the first one first, and what is in it.

    Args:
        popup: what is open.
        look: fonts and measures.
        size: (width, height) of the screen in pixels.
        is_sheet: whether lists and context menus are sheets at the bottom, if they fit there.
    """
    if is_sheet and popup.kind != "menu":
        sheet = _sheet(popup, look, size)
        if sheet is not None:
            return [sheet]
    found: list[tuple[Box, Menu]] = []
    items, anchor, beside = popup.items, popup.box, False
    for depth in range(len(popup.trail) + 1):
        marked = popup.trail[depth] if depth < len(popup.trail) else -1
        columns = -(-(sum(line_height(item, look) for item in items) + 6) // size[1])
        box = _fit(_size(items, popup, look, depth, columns), anchor, beside, size)
        menu = Menu(items=items, kind=popup.kind, depth=depth, marked=marked, columns=columns)
        menu.id = f"popup.{depth}"
        found.append((box, menu))
        if marked < 0 or not items[marked].items or not items[marked].enabled:
            break
        column = marked - marked % _rows(items, columns)
        top = box[1] + 3 + sum(line_height(item, look) for item in items[column:marked])
        bottom = top + line_height(items[marked], look)
        anchor, beside, items = (box[0], top, box[2], bottom), True, items[marked].items
    return found


def _sheet(popup: Popup, look: Look, size: tuple[int, int]) -> tuple[Box, Menu] | None:
    """All lines across the bottom of a phone; None if one leads to others, or there is no room."""
    room, bottom = look.line, size[1] - wm.bar_size(look)
    high = room + 6 + sum(line_height(item, look) + look.unit for item in popup.items)
    if high > bottom - look.line or any(item.items for item in popup.items):
        return None
    marked = popup.trail[0] if popup.trail else -1
    menu = Menu(items=popup.items, kind=popup.kind, depth=0, marked=marked, room=room, id="popup.0")
    return (0, bottom - high, size[0], bottom), menu


def _rows(items: tuple[MenuItem, ...], columns: int) -> int:
    """Lines of a column."""
    return -(-len(items) // columns)


def _size(items: tuple[MenuItem, ...], popup: Popup, look: Look, depth: int, columns: int) -> tuple[int, int]:
    wide = 0
    for item in items:
        keys = shown_keys(item.keys) or ("▸" if item.items else "")
        wide = max(wide, look.width(item.label) + (look.width(keys) + 2 * look.line if keys else 0))
    wide += 4 * look.unit + (look.line if any(item.checked is not None for item in items) else 0)
    if popup.kind == "choice" and depth == 0:
        wide = max(wide, popup.box[2] - popup.box[0])
    rows = _rows(items, columns)
    heights = (
        sum(line_height(item, look) for item in items[rows * n : rows * (n + 1)]) for n in range(columns)
    )
    return max(wide, 6 * look.line) * columns, max(heights) + 6


def _fit(wanted: tuple[int, int], anchor: Box, beside: bool, size: tuple[int, int]) -> Box:
    """Box under (or beside) what opened it; above it, or at its other side, where there is no room."""
    wide, high = wanted
    if not beside:
        left = max(0, min(anchor[0], size[0] - wide))
        top = anchor[3] if anchor[3] + high <= size[1] else max(0, anchor[1] - high)
    elif anchor[2] - 2 + wide <= size[0] or anchor[0] + 2 >= wide:
        left = anchor[2] - 2 if anchor[2] - 2 + wide <= size[0] else anchor[0] + 2 - wide
        top = max(0, min(anchor[1] - 3, size[1] - high))
    else:  # a narrow screen: under its line, which stays in sight
        left, top = max(0, min(anchor[0] + 16, size[0] - wide)), anchor[3]
    return left, top, left + wide, top + high
