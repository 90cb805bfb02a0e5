"""Tasks of the spreadsheet: cells, sums, rows, sorting, questions. What counts is the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vlrl.envs.gui.emu.apps.parts.formulas import Cells, written
from vlrl.envs.gui.emu.apps.parts.tables import dumped, in_order, name_of, with_cell, with_row, without_row
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    answer,
    click,
    context,
    key,
    menu,
    open_app,
    type_into,
    write,
)
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.columns import Table, table
from vlrl.envs.gui.emu.wording import listed, worded

FUNCTIONS: dict[str, tuple[str, Callable[[Sequence[float]], float]]] = {
    "SUM": ("sum", sum),
    "AVERAGE": ("average", lambda numbers: sum(numbers) / len(numbers)),
    "MIN": ("smallest", min),
    "MAX": ("largest", max),
}


def opened(table: Table) -> list[Intent]:
    """How a table is opened from the start."""
    return [open_app("spreadsheet"), key("ctrl+o"), type_into("name", table.file), click("accept")]


def entered(cell: str, text: str) -> list[Intent]:
    """How a cell is filled."""
    return [click(f"grid.{cell}"), type_into("formula", text), key("enter")]


def reckoned(function: str, column: str) -> str:
    """What a goal calls a function of a column."""
    word = FUNCTIONS[function][0]
    return worded(f"the {word} of the numbers under “{{column}}”", column=column)


def edited(table: Table, is_open: bool, goal: str, wanted: Cells, steps: list[Intent]) -> Setup:
    """A task to change a table and save it: half for the table on the screen, half for the file."""

    def is_changed(world: World) -> bool:
        sheet = world.app("spreadsheet")
        return sheet is not None and sheet.path == table.path and dumped(sheet.cells) == dumped(wanted)

    opening = worded("Open {file} in Documents with the app {app}.", file=table.file, app=tr("Spreadsheet"))
    return Setup(
        goal=" ".join((*([] if is_open else [opening]), goal, worded("Then save the file."))),
        files={table.path: table.text},
        windows=[("spreadsheet", table.path)] if is_open else [],
        milestones={
            "changed": lambda world: is_changed(world) or world.read(table.path) == dumped(wanted),
            "saved": lambda world: world.read(table.path) == dumped(wanted),
        },
        changes=[f"file:{table.path}"],
        oracle=[*([] if is_open else opened(table)), *steps, key("ctrl+s")],
    )


@template("sheet/set_cells", levels=(1, 2, 3))
def set_cells(draw: Draw) -> Setup:
    """One to three numbers are to be corrected, found by their row's name and their column's."""
    sheet = table(draw)
    rows = draw.picks(range(1, sheet.last), draw.level)
    wanted, words, steps = sheet.cells, [], []
    for row in rows:
        column = draw.number(1, 2)
        cell, number = name_of(column, row), str(draw.number(100, 999))
        wanted = with_cell(wanted, cell, number)
        said = {"row": sheet.cells[row][0], "number": number, "column": sheet.cells[0][column]}
        words.append(worded("{row} has {number} under “{column}”", **said))
        steps += entered(cell, number)
    goal = worded("Correct the table {table} so that {cells}.", table=sheet.name, cells=listed(words, ", "))
    return edited(sheet, draw.level < 3, goal, wanted, steps)


@template("sheet/total", levels=(1, 2, 3))
def total(draw: Draw) -> Setup:
    """A function of a column, of one or of both, under it."""
    sheet, columns = table(draw, 4, 5 + draw.level), [1, 2] if draw.level == 3 else [draw.number(1, 2)]
    name = draw.pick(tuple(FUNCTIONS) if draw.level > 1 else ("SUM",))
    wanted, steps, places = sheet.cells, [], []
    for column in columns:
        cell, letter = name_of(column, sheet.last), "ABC"[column]
        numbers = [float(row[column]) for row in sheet.cells[1:]]
        wanted = with_cell(wanted, cell, written(FUNCTIONS[name][1](numbers)))
        steps += entered(cell, f"={name}({letter}2:{letter}{sheet.last})")
        what = reckoned(name, sheet.cells[0][column])
        places.append(worded("{what} into {cell}", what=what, cell=cell))
    goal = worded("Put {places}.", places=listed(places))
    return edited(sheet, draw.level == 1, goal, wanted, steps)


@template("sheet/difference", levels=(2, 3))
def difference(draw: Draw) -> Setup:
    """A new column that is reckoned from the two others, row by row."""
    sheet = table(draw, draw.level + 1, draw.level + 2)
    sign, word = draw.pick((("-", "minus"), ("+", "plus"), ("*", "times")))
    heading = draw.pick(("Result", "Combined", "Outcome", "Check"))
    wanted, steps = with_cell(sheet.cells, "D1", heading), entered("D1", heading)
    for number, row in enumerate(sheet.cells[1:], 2):
        a, b = float(row[1]), float(row[2])
        result = a - b if sign == "-" else a + b if sign == "+" else a * b
        wanted = with_cell(wanted, f"D{number}", written(result))
        steps += [write(f"=B{number}{sign}C{number}"), key("enter")]
    a_name, b_name = sheet.cells[0][1:]
    goal = worded(
        "Add a column D with the heading “{heading}” that has “{first}” {sign} “{second}” in every row.",
        heading=heading,
        first=a_name,
        sign=worded(word),
        second=b_name,
    )
    return edited(sheet, True, goal, wanted, steps)


@template("sheet/sort", levels=(1, 2))
def sort(draw: Draw) -> Setup:
    """The rows are to be put in order by one of the columns."""
    sheet, falling = table(draw, 6, 8), draw.pick((False, True))
    orders = {(c, f): in_order(sheet.cells, c, f) for c in (0, 1, 2) for f in (False, True)}
    columns = [column for column in (0, 1, 2) if orders[column, falling] != sheet.cells]
    column = draw.pick(columns)
    words = (
        ("from A to Z", "from Z to A")
        if column == 0
        else ("with the smallest first", "with the largest first")
    )
    goal = f"Sort the rows of {{table}} by “{{column}}”, {words[falling]}."
    goal = worded(goal, table=sheet.name, column=sheet.cells[0][column])
    way = "sort_down" if falling else "sort"
    steps = [click(f"grid.{name_of(column, 1)}"), menu("data", way)]
    return edited(sheet, draw.level == 1, goal, orders[column, falling], steps)


@template("sheet/delete_row", levels=(1, 2, 3))
def delete_row(draw: Draw) -> Setup:
    """Rows are to go, found by their names."""
    sheet = table(draw, 5, 8)
    names = [row[0] for row in draw.picks(sheet.cells[1:], draw.level)]
    wanted, steps = sheet.cells, []
    for name in names:
        row = [line[:1] for line in wanted].index((name,))
        wanted = without_row(wanted, row)
        steps.append(context(f"grid.A{row + 1}", f"delete_row.{row + 1}"))
    rows = "row" if len(names) == 1 else "rows"
    goal = f"Delete the {rows} of {{names}} from the table {{table}}."
    goal = worded(goal, names=listed(names), table=sheet.name)
    return edited(sheet, draw.level == 1, goal, wanted, steps)


@template("sheet/insert_row", levels=(1, 2))
def insert_row(draw: Draw) -> Setup:
    """A row is to be put in before another one."""
    sheet = table(draw, 4, 7)
    row = draw.number(1, sheet.last - 1)
    line = (
        draw.pick(("Extra", "Sample", "New one", "Spare")),
        str(draw.number(100, 999)),
        str(draw.number(100, 999)),
    )
    wanted, steps = with_row(sheet.cells, row), [context(f"grid.A{row + 1}", f"insert_row.{row + 1}")]
    for column, text in enumerate(line):
        wanted = with_cell(wanted, name_of(column, row), text)
        steps += entered(name_of(column, row), text)
    goal = worded(
        "Insert a new row right above “{row}” with {first}, {second} and {third}.",
        row=sheet.cells[row][0],
        **dict(zip(("first", "second", "third"), line, strict=True)),
    )
    return edited(sheet, draw.level == 1, goal, wanted, steps)


@template("sheet/question", levels=(1, 2, 3))
def question(draw: Draw) -> Setup:
    """A number of a table, the row with the greatest one, or a sum is to be said."""
    sheet, column = table(draw, 5, 8), draw.number(1, 2)
    heading, rows = sheet.cells[0][column], sheet.cells[1:]
    steps: list[Intent] = [] if draw.level == 1 else opened(sheet)
    if draw.level == 1:
        row = draw.pick(rows)
        ask, said = "What number does {row} have under “{column}”?", row[column]
        goal = worded(ask, row=row[0], column=heading)
    elif draw.level == 2:
        said = max(rows, key=lambda row: int(row[column]))[0]
        ask = "Which row has the largest number under “{column}”? Answer with its name."
        goal = worded(ask, column=heading)
        steps += [click(f"grid.{name_of(column, 1)}"), menu("data", "sort_down")]
    else:
        said = written(sum(float(row[column]) for row in rows))
        goal = worded("What do the numbers under “{column}” add up to?", column=heading)
        letter = "ABC"[column]
        steps += entered("F1", f"=SUM({letter}2:{letter}{sheet.last})")
    if draw.level > 1:
        goal = f"{worded('Look into {file} in Documents.', file=sheet.file)} {goal}"
    return Setup(
        goal=goal,
        files={sheet.path: sheet.text},
        windows=[("spreadsheet", sheet.path)] if draw.level == 1 else [],
        answer=said,
        oracle=[*steps, answer(said)],
    )
