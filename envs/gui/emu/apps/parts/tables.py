"""A spreadsheet's cells as a value, and what is done to them; CSV in and out."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from vlrl.envs.gui.emu.apps.parts.formulas import NUMBER, Cells, content, moved, shown

COLUMNS = "ABCDEF"
ROWS = 30


def parsed(text: str) -> Cells:
    """The cells of a CSV file; what is beyond the last column or row is left out."""
    rows = [tuple(row[: len(COLUMNS)]) for row in csv.reader(io.StringIO(text, newline=""))]
    return _trimmed(rows[:ROWS])


def dumped(cells: Cells) -> str:
    """A CSV file with what the cells show: formulas become numbers, as in every spreadsheet."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    width = max(map(len, cells), default=0)
    for row in range(len(cells)):
        writer.writerow([shown(cells, column, row) for column in range(width)])
    return out.getvalue()


def place_of(name: str) -> tuple[int, int]:
    """(column, row) of "B3", counted from 0."""
    return COLUMNS.index(name[0]), int(name[1:]) - 1


def name_of(column: int, row: int) -> str:
    """The name of (1, 2), "B3"; the nearest cell if there is none."""
    return f"{COLUMNS[min(max(0, column), len(COLUMNS) - 1)]}{min(max(0, row), ROWS - 1) + 1}"


def typed(cells: Cells, name: str) -> str:
    """What was typed into a cell."""
    return content(cells, *place_of(name))


def value(cells: Cells, name: str) -> str:
    """What a cell shows."""
    return shown(cells, *place_of(name))


def with_cell(cells: Cells, name: str, text: str) -> Cells:
    """The table with another text in a cell."""
    column, row = place_of(name)
    rows = [list(line) for line in cells] + [[] for _ in range(row + 1 - len(cells))]
    rows[row] += [""] * (column + 1 - len(rows[row]))
    rows[row][column] = text
    return _trimmed(rows)


def with_row(cells: Cells, row: int) -> Cells:
    """Insert an empty row in front of a row; references follow."""
    if len(cells) >= ROWS or row >= len(cells):
        return cells
    rows = [tuple(moved(text, lambda n: n + (n >= row)) for text in line) for line in cells]
    return _trimmed([*rows[:row], (), *rows[row:]])


def without_row(cells: Cells, row: int) -> Cells:
    """Remove a row; references follow, and those to it become errors."""

    def follow(number: int) -> int | None:
        return None if number == row else number - (number > row)

    return _trimmed([tuple(moved(text, follow) for text in line) for n, line in enumerate(cells) if n != row])


def in_order(cells: Cells, column: int, falling: bool) -> Cells:
    """The rows under the heading in the order of a column, numbers before texts and empty cells last."""

    def rank(row: int) -> tuple[int, float, str]:
        text = shown(cells, column, row).strip()
        if NUMBER.fullmatch(text):
            return 0, float(text), ""
        return 1, 0.0, text.casefold()

    rows = range(1, len(cells))
    full = sorted((row for row in rows if shown(cells, column, row).strip()), key=rank, reverse=falling)
    order = [*full, *(row for row in rows if row not in full)]
    lines = [cells[0]] if cells else []
    for new, old in enumerate(order, 1):
        lines.append(tuple(moved(text, lambda n, o=old, m=new: m if n == o else n) for text in cells[old]))  # type: ignore[misc]
    return _trimmed(lines)


def _trimmed(rows: Sequence[Sequence[str]]) -> Cells:
    """Cells without empty ones at the ends of rows and empty last rows: equal tables are equal values."""
    lines = []
    for row in rows:
        filled = [index for index, text in enumerate(row) if text]
        lines.append(tuple(row[: filled[-1] + 1]) if filled else ())
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)
