"""Spreadsheet: cells, formulas, rows that are sorted; kept as CSV."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.parts import documents
from vlrl.envs.gui.emu.apps.parts.cells import CellGrid
from vlrl.envs.gui.emu.apps.parts.documents import Document
from vlrl.envs.gui.emu.apps.parts.formulas import Cells
from vlrl.envs.gui.emu.apps.parts.tables import (
    dumped,
    in_order,
    name_of,
    parsed,
    place_of,
    typed,
    with_cell,
    with_row,
    without_row,
)
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, KeyPress
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Column,
    Divider,
    Entry,
    Label,
    MenuBar,
    MenuItem,
    Row,
    Widget,
    tool_bar,
    tool_button,
)
from vlrl.envs.gui.emu.windows.menus import edit_items

add_words("""
Spreadsheet = Tabelle = Tableur = Hoja de cálculo
Table = Tabelle = Tableau = Tabla
Data = Daten = Données = Datos
Formula = Formel = Formule = Fórmula
Next cell = Nächste Zelle = Cellule suivante = Celda siguiente
Insert row = Zeile einfügen = Insérer une ligne = Insertar fila
Delete row = Zeile löschen = Supprimer la ligne = Eliminar fila
Sort A to Z = Aufsteigend sortieren = Trier de A à Z = Ordenar de A a Z
Sort Z to A = Absteigend sortieren = Trier de Z à A = Ordenar de Z a A
""")
_BARS = tuple(("ink", "box", (3.0, 4.0 + 6 * n, 7.0 + 3 * n, 7.0 + 6 * n)) for n in range(3))
ICONS["sort_up"] = (*_BARS, ("blue", "poly", (18, 3, 23, 10, 19.5, 10, 19.5, 21, 16.5, 21, 16.5, 10, 13, 10)))
ICONS["sort_down"] = (
    *_BARS,
    ("blue", "poly", (18, 21, 23, 14, 19.5, 14, 19.5, 3, 16.5, 3, 16.5, 14, 13, 14)),
)
STEPS = {"up": (0, -1), "down": (0, 1), "shift+tab": (-1, 0), "page_up": (0, -8), "page_down": (0, 8)}


@dataclass(frozen=True)
class Sheet(Document):
    """What is worked on.

    Attributes:
        cells: as they are now, but for what is being typed.
        at: name of the marked cell.
        formula: what stands in the line above the cells; goes into the marked cell when it is left.
    """

    saved: Cells = ()
    cells: Cells = ()
    at: str = "A1"
    formula: str = ""
    suggested = ("Table", ".csv")

    @classmethod
    def parsed(cls, stored: Any) -> Cells | None:
        """The cells of a CSV file."""
        return parsed(stored) if isinstance(stored, str) else None

    @property
    def content(self) -> Cells:
        """The cells, with what was typed."""
        return _entered(self).cells

    def holding(self, content: Cells) -> Self:
        """Sheet with other cells, the same one marked."""
        return replace(self, cells=content, formula=typed(content, self.at))

    def stored(self) -> str:
        """The content as CSV."""
        return dumped(self.content)


def build(state: Sheet, reader: Reader) -> Widget:
    """Menus, tools, the formula, the cells."""
    rows = (MenuItem("insert_row", tr("Insert row")), MenuItem("delete_row", tr("Delete row")))
    menus = MenuBar(
        documents.file_menu(),
        ("edit", tr("Edit"), (*edit_items(), SEPARATOR, *rows, MenuItem("next", tr("Next cell"), "tab"))),
        ("data", tr("Data"), (MenuItem("sort", tr("Sort A to Z")), MenuItem("sort_down", tr("Sort Z to A")))),
    )
    tools = tool_bar(
        tool_button("open", tr("Open"), "open"),
        tool_button("save", tr("Save"), "save"),
        tool_button("sort", tr("Sort A to Z"), "sort_up"),
        tool_button("sort_down", tr("Sort Z to A"), "sort_down"),
    )
    line = Row(
        Label(state.at, "bold", align="center", width=34),
        Entry("formula", tr("Formula"), state.formula, grow=1, fixed=True),
    )
    grid = CellGrid("grid", tr("Table"), _entered(state).cells, state.at, rows)
    return Column(menus, tools, line, Divider(), grid, gap=0)


def handle(state: Sheet, event: Event, system: System) -> Sheet:
    """Cells and files; what was typed goes into its cell whenever anything else is done."""
    match event:
        case Change("formula"):
            return state
        case Activate("formula"):
            return _go(state, 0, 1, system)
        case Change("grid", str(name)):
            return _at(_entered(state), name, system)
        case KeyPress("escape"):
            return _at(state, state.at, system)
        case KeyPress(chord) if chord in STEPS:
            return _go(state, *STEPS[chord], system)
        case Command("next"):
            return _go(state, 1, 0, system)
        case Command("sort" | "sort_down" as way):
            state, column = _entered(state), place_of(state.at)[0]
            return _at(
                replace(state, cells=in_order(state.cells, column, way == "sort_down")), state.at, system
            )
        case Command(id) if id.startswith(("insert_row", "delete_row")):
            what, _, number = id.partition(".")
            row = int(number) - 1 if number else place_of(state.at)[1]
            change = with_row if what == "insert_row" else without_row
            state = _entered(state)
            return _at(replace(state, cells=change(state.cells, row)), state.at, system)
    return documents.handle(_entered(state), event, system)


def _entered(state: Sheet) -> Sheet:
    """Sheet with what was typed in its cell."""
    if state.formula == typed(state.cells, state.at):
        return state
    return replace(state, cells=with_cell(state.cells, state.at, state.formula.strip()))


def _at(state: Sheet, name: str, system: System) -> Sheet:
    """Mark another cell; what is typed next replaces its content."""
    system.focus("formula", select=True)
    return replace(state, at=name, formula=typed(state.cells, name))


def _go(state: Sheet, right: int, down: int, system: System) -> Sheet:
    column, row = place_of(state.at)
    return _at(_entered(state), name_of(column + right, row + down), system)


SPREADSHEET = register(
    App(
        "spreadsheet",
        "Spreadsheet",
        "spreadsheet",
        Sheet.start,
        build,
        handle,
        title=documents.title,
        size=(470, 340),
        focus="formula",
        opens=(".csv",),
    )
)
