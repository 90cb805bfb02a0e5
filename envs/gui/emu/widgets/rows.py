"""Lists, tables and trees: rows that are selected, opened, dragged and scrolled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate, veil
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.input.events import Activate, Change, Command
from vlrl.envs.gui.emu.state import Box, MenuItem
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut
from vlrl.envs.gui.emu.widgets.basic import focus_ring, surface
from vlrl.envs.gui.emu.widgets.containers import bar_width, place_bar


class Line(NamedTuple):
    """A row of a list.

    Attributes:
        key: what events say; unlike any other row's.
        cells: its texts, one a column; the first is its name.
        icon: in front of the first text.
        depth: in a tree, how far it is moved to the right.
        open: of a branch of a tree, whether its children are shown; None for a leaf.
        menu: its context menu, in the place of the list's.
        bold: for what is new.
    """

    key: Any
    cells: tuple[str, ...]
    icon: str = ""
    depth: int = 0
    open: bool | None = None
    menu: tuple[MenuItem, ...] = ()
    bold: bool = False


@dataclass(slots=True, init=False)
class Rows(Widget):
    """A list, a table (with `columns`) or a tree (lines with a depth).

    A click sends Change(id, key), a double click or enter Activate(id, key). With `many`, the value is a
    tuple of keys, the first of them the one that shift extends from; ctrl adds one and shift all between, and
    a drag on empty ground selects what the rubber band touches. A branch's arrow sends
    Command(id + ".toggle", key); a column's head Command(id + ".sort", index). Dragging a row onto a row or
    onto any widget with an id sends Drop if `drags`.

    Attributes:
        columns: (title, width in pixels of font size 13, 0 for what is left) of each; () for a plain list.
        selected: the keys that are.
    """

    lines: tuple[Line, ...]
    columns: tuple[tuple[str, int], ...]
    selected: Collection[Any]
    many: bool
    drags: bool
    role: ClassVar[str] = "list"
    takes_focus: ClassVar[bool] = True
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(
        self,
        id: str,
        name: str,
        lines: Sequence[Line],
        selected: Any = None,
        *,
        columns: tuple[tuple[str, int], ...] = (),
        many: bool = False,
        drags: bool = False,
        menu: tuple[MenuItem, ...] = (),
        grow: int = 1,
        width: int = 90,
        height: int = 60,
    ) -> None:
        """Say what it is called, what is in it, what is selected: a key, or with `many` a tuple of keys."""
        Widget.__init__(self, id=id, name=name, grow=grow, width=width, height=height, menu=menu)
        self.lines, self.columns, self.many, self.drags = tuple(lines), columns, many, drags
        self.selected = tuple(selected or ()) if many else () if selected is None else (selected,)

    def row_height(self, look: Look) -> int:
        """Height of a line."""
        return look.row - 2

    def row(self, line: Line, edges: tuple[int, ...]) -> RowOf:
        """The widget of a line."""
        return RowOf(self, line, edges)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The heads, then the lines that are seen."""
        view.add(self, box, clip)
        look = view.look
        high = self.row_height(look)
        body = (box[0] + 1, box[1] + 1, box[2] - 1, box[3] - 1)
        content = len(self.lines) * high
        visible = body[3] - body[1] - (high if self.columns else 0)
        right = body[2] - (bar_width(look) if content > visible else 0)
        edges = self.edges(body[0], right, look)
        if self.columns:
            for index, (title, _) in enumerate(self.columns):
                head = Head(id=f"{self.id}.sort.{index}", name=title, press=Command(f"{self.id}.sort", index))
                head.place(view, (edges[index], body[1], edges[index + 1], body[1] + high), clip)
            body = (body[0], body[1] + high, *body[2:])
        offset = view.scroll(self.id, body, content)
        inside = cut(body, clip)
        for index in range(offset // high, len(self.lines)):
            y = body[1] + index * high - offset
            if y >= body[3]:
                break
            self.row(self.lines[index], edges).place(view, (body[0], y, right, y + high), inside)
        if view.band is not None and view.band.id == self.id and len(view.band.path) == 2:
            Band().place(view, _around(*view.band.path, body[1] - offset), inside)
        place_bar(self.id, view, body, clip)

    def touched(self, first: int, last: int, look: Look) -> tuple[Any, ...]:
        """Keys of the rows between two heights, in pixels from the top of the first row."""
        high = self.row_height(look)
        top, bottom = sorted((first, last))
        return tuple(line.key for line in self.lines[max(0, top // high) : bottom // high + 1])

    def edges(self, left: int, right: int, look: Look) -> tuple[int, ...]:
        """Where the columns begin, and the right end."""
        if not self.columns:
            return left, right
        widths = [width * look.font.size // 13 for _, width in self.columns]
        rest, flexible = max(0, right - left - sum(widths)), widths.count(0)
        edges = [left]
        for width in widths:
            edges.append(edges[-1] + (width or rest // flexible))
        return (*edges[:-1], max(right, edges[-2]))

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The paper."""
        colours = view.look.palette
        items.append((*box, clip, plate, (surface(view), colours.field, colours.border, 0)))
        focus_ring(items, self, box, clip, view)


@dataclass(slots=True, init=False)
class RowOf(Widget):
    """One line of a list."""

    owner: Rows
    line: Line
    edges: tuple[int, ...]

    def __init__(self, owner: Rows, line: Line, edges: tuple[int, ...]) -> None:
        """Make a line of a list whose columns have these edges."""
        Widget.__init__(self, id=f"{owner.id}.{line.key}", name=line.cells[0], menu=line.menu or owner.menu)
        self.press, self.twice = Change(owner.id, line.key), Activate(owner.id, line.key)
        self.owner, self.line, self.edges = owner, line, edges

    @property
    def role(self) -> str:  # type: ignore[override]
        """ARIA's word for the list's kind."""
        if self.line.open is not None or self.line.depth:
            return "treeitem"
        return "row" if self.owner.columns else "option"

    @property
    def value(self) -> str:
        """The texts after the first."""
        return "\t".join(self.line.cells[1:])

    @property
    def is_selected(self) -> bool:
        """Whether it is selected in its list."""
        return self.line.key in self.owner.selected

    @property
    def drop_key(self) -> Any:
        """Its key."""
        return self.line.key

    @property
    def ground(self) -> int:
        """Where, from the left, the empty ground beside the first cell begins; never in the row's middle."""
        return max(self.edges[1], (3 * self.edges[0] + 5 * self.edges[-1]) // 8)

    def is_ground(self, x: int) -> bool:
        """Whether a place is empty ground, from which a rubber band is drawn and nothing is dragged."""
        return self.owner.many and not self.is_selected and len(self.edges) > 2 and x >= self.ground

    def arrow(self, box: Box, look: Look) -> Box:
        """Where a branch is opened and closed."""
        left = box[0] + look.unit // 2 + self.line.depth * look.line
        return left, box[1], left + look.line, box[3]

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The cells."""
        colours = view.look.palette
        inside = colours.selected if self.is_selected else colours.field
        items.append((*box, clip, fill, (inside,)))
        faint = mix(colours.text, colours.muted, 60)
        self.paint_cells(items, box, clip, view, (inside, colours.text, faint, colours.muted))

    def paint_cells(
        self,
        items: list[Item],
        box: Box,
        clip: Box,
        view: View,
        colours: tuple[Colour, Colour, Colour, Colour],
    ) -> None:
        """What is on the paper; the colours are the paper's, the first text's, the others', the arrow's."""
        look, line, (inside, ink, faint, arrow_ink) = view.look, self.line, colours
        font = look.bold if line.bold else look.font
        left = box[0] + look.unit
        if line.open is not None or line.depth:
            arrow = self.arrow(box, look)
            if line.open is not None:
                mark = "▾" if line.open else "▸"
                items.append((*arrow, clip, plate, (inside, inside, None, 0, mark, font, arrow_ink)))
            left = arrow[2]
        if line.icon:
            side = min(look.line, box[3] - box[1])
            top = (box[1] + box[3] - side) // 2
            values = (line.icon, ink, inside)
            items.append((left, top, left + side, top + side, clip, icon_painter, values))
            left += side + look.unit
        for index, text in enumerate(line.cells[: len(self.edges) - 1]):
            right = self.edges[index + 1]
            if index:
                left = self.edges[index] + look.unit
            if text and right > left:
                cell = (inside, inside, None, 0, text, font, faint if index else ink, "left")
                items.append((left, box[1] + 1, right, box[3] - 1, clip, plate, cell))

    def states(self, view: View) -> set[str]:
        """Selected, expanded."""
        found = {"selected"} if self.is_selected else set()
        return found | ({"expanded"} if self.line.open else set())


@dataclass(slots=True)
class Head(Widget):
    """The title of a column."""

    role: ClassVar[str] = "columnheader"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The title and a line under it."""
        look, colours = view.look, view.look.palette
        inside = mix(colours.field, colours.button, 80)
        values = (inside, inside, None, 0, self.name, look.font, colours.muted, "left", look.unit)
        items.append((*box, clip, plate, values))
        items.append((box[0], box[3] - 1, box[2], box[3], clip, fill, (colours.border,)))


@dataclass(slots=True)
class Band(Widget):
    """The rubber band while it is drawn."""

    is_solid: ClassVar[bool] = False

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """A tint with a line around it; the rows show through."""
        look = view.look
        on_accent = look.family.shape is not None and look.family.shape.row == "accent"
        colour = look.palette.muted if on_accent else look.palette.accent
        items.append((*box, clip, veil, (colour,)))


def _around(start: Pixel, end: Pixel, down: int) -> Box:
    """The box between two corners, moved down."""
    (x0, x1), (y0, y1) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    return x0, y0 + down, x1 + 1, y1 + down + 1
