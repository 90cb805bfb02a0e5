"""The grid of a spreadsheet: lettered columns, numbered rows, cells that are clicked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from vlrl.envs.gui.emu.apps.parts.formulas import Cells, shown
from vlrl.envs.gui.emu.apps.parts.tables import COLUMNS, ROWS
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.input.events import Change
from vlrl.envs.gui.emu.state import Box, MenuItem
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut
from vlrl.envs.gui.emu.widgets.containers import bar_width, place_bar


@dataclass(slots=True, init=False)
class CellGrid(Widget):
    """Cells that scroll under their columns' heads: Change(id, "B3") when one is clicked.

    Attributes:
        cells: what was typed.
        chosen: name of the cell that is marked.
        row_menu: the context menu of every cell and row; its commands' ids get the row's number, "delete.3".
    """

    cells: Cells
    chosen: str
    row_menu: tuple[MenuItem, ...]
    role: ClassVar[str] = "grid"
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(
        self, id: str, name: str, cells: Cells, chosen: str, row_menu: tuple[MenuItem, ...] = ()
    ) -> None:
        """Say what is in it."""
        Widget.__init__(self, id=id, name=name, grow=1, height=80)
        self.cells, self.chosen, self.row_menu = cells, chosen, row_menu

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The heads, then every row; those out of sight cost little and can be scrolled to."""
        view.add(self, box, clip)
        look = view.look
        high, left = look.row - 1, box[0] + look.width("000") + look.unit
        right = box[2] - bar_width(look)
        edges = [left + (right - left) * index // len(COLUMNS) for index in range(len(COLUMNS) + 1)]
        for index, letter in enumerate(COLUMNS):
            head = _Head(name=letter, id=f"{self.id}.{letter}")
            head.marked = letter == self.chosen[0]
            head.place(view, (edges[index], box[1], edges[index + 1], box[1] + high), clip)
        body = (box[0], box[1] + high, box[2], box[3])
        offset, inside = view.scroll(self.id, body, ROWS * high), cut(body, clip)
        for row in range(ROWS):
            y = body[1] + row * high - offset
            texts = tuple(shown(self.cells, column, row) for column in range(len(COLUMNS)))
            chosen = self.chosen[0] if str(row + 1) == self.chosen[1:] else ""
            head, cells = _row(self.id, row, texts, chosen, self.row_menu)
            view.add(head, (box[0], y, left, y + high), inside)
            for column, cell in enumerate(cells):
                view.add(cell, (edges[column], y, edges[column + 1], y + high), inside)
        place_bar(self.id, view, body, clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The corner and the paper."""
        colours = view.look.palette
        items.append((*box, clip, fill, (mix(colours.field, colours.button, 80),)))


@dataclass(slots=True, init=False)
class _Cell(Widget):
    """One cell."""

    text: str
    marked: bool

    def __init__(self, grid: str, name: str, text: str, marked: bool, menu: tuple[MenuItem, ...]) -> None:
        Widget.__init__(self, id=f"{grid}.{name}", name=name, press=Change(grid, name), menu=menu)
        self.text, self.marked = text, marked

    role: ClassVar[str] = "gridcell"

    @property
    def value(self) -> str:
        """What it shows."""
        return self.text

    def states(self, view: View) -> set[str]:
        """Whether it is the chosen one."""
        return {"selected"} if self.marked else set()

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The text, numbers to the right; thin lines between the cells."""
        look, colours = view.look, view.look.palette
        x0, y0, x1, y1 = box
        is_number = self.text[-1:].isdigit() and self.text.lstrip("-")[:1].isdigit()
        inside = colours.field
        align = "right" if is_number and look.width(self.text) < x1 - x0 - 6 else "left"
        ink = (204, 60, 52) if self.text.startswith("#") else colours.text
        text = (inside, inside, None, 0, self.text, look.font, ink, align, 3)
        items.append((x0, y0, x1 - 1, y1 - 1, clip, plate, text))
        line = (mix(colours.field, colours.border, 70),)
        items.append((x1 - 1, y0, x1, y1, clip, fill, line))
        items.append((x0, y1 - 1, x1, y1, clip, fill, line))
        if self.marked:
            accent = (colours.accent,)
            for edge in (
                (x0, y0, x1, y0 + 2),
                (x0, y1 - 2, x1, y1),
                (x0, y0, x0 + 2, y1),
                (x1 - 2, y0, x1, y1),
            ):
                items.append((*edge, clip, fill, accent))


@dataclass(slots=True)
class _Head(Widget):
    """A column's letter or a row's number."""

    marked: bool = False
    role: ClassVar[str] = "columnheader"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The letter, and lines around it."""
        look, colours = view.look, view.look.palette
        inside = colours.selected if self.marked else mix(colours.field, colours.button, 80)
        ink = colours.text if self.marked else colours.muted
        items.append((*box, clip, plate, (inside, inside, None, 0, self.name, look.small, ink)))
        items.append((box[2] - 1, box[1], box[2], box[3], clip, fill, (colours.border,)))
        items.append((box[0], box[3] - 1, box[2], box[3], clip, fill, (colours.border,)))


@lru_cache(maxsize=256)
def _row(
    grid: str, row: int, texts: tuple[str, ...], chosen: str, row_menu: tuple[MenuItem, ...]
) -> tuple[_Head, tuple[_Cell, ...]]:
    """A row's number and its cells, of which another change of the table mostly needs the same again.

    Args:
        grid: id of the grid.
        row: counted from 0.
        texts: what the cells show.
        chosen: the column whose cell is marked; "" for none.
        row_menu: see CellGrid.
    """
    menu = tuple(item._replace(id=f"{item.id}.{row + 1}") for item in row_menu)
    head = _Head(name=str(row + 1), id=f"{grid}.{row + 1}", menu=menu, marked=bool(chosen))
    named = zip(COLUMNS, texts, strict=True)
    cells = (_Cell(grid, f"{letter}{row + 1}", text, letter == chosen, menu) for letter, text in named)
    return head, tuple(cells)
