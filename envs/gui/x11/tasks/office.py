"""Work in the office suite (LibreOffice Calc and Writer)."""

from __future__ import annotations

import numpy as np

from vlrl.envs.gui.actions import Action, Answer, OpenApp, TypeText
from vlrl.envs.gui.x11.task import DesktopTask, Predicate, Setup
from vlrl.envs.gui.x11.tasks.documents import headings_of, paragraphs_of, rows_of, sheet, styled, text
from vlrl.envs.gui.x11.tasks.words import NOUNS, draw, has, holds, keys, lines, sentences

_CALC, _WRITER = ("libreoffice-calc",), ("libreoffice-writer",)


def _open(app: str, path: str) -> list[Action]:
    return [OpenApp(app), *keys("ctrl+o"), TypeText(f"/home/user/{path}\n")]


def _open_csv(path: str) -> list[Action]:
    """The dialog about separators is right as it is."""
    return [*_open("libreoffice-calc", path), *keys("enter")]


def _save_as(name: str) -> list[Action]:
    return [*keys("ctrl+shift+s"), *keys("ctrl+a"), TypeText(f"{name}\n")]


def _goods(rng: np.random.Generator, count: int) -> list[list[str]]:
    return [[good, str(rng.integers(2, 40)), str(rng.integers(3, 400))] for good in draw(rng, NOUNS, count)]


def _has_rows(path: str, rows: list[list[str]]) -> Predicate:
    return lambda tree: rows_of(tree, path) == rows


def _has_paragraphs(path: str, paragraphs: list[str]) -> Predicate:
    return lambda tree: paragraphs_of(tree, path) == paragraphs


def _total(rng: np.random.Generator, level: int) -> Setup:
    name, goods = f"{draw(rng, NOUNS, 1)[0]}.csv", _goods(rng, 4 * level)
    total = str(sum(int(row[2]) for row in goods))
    before = lines(map(",".join, goods)).decode()
    cell = f"C{len(goods) + 1}"
    return Setup(
        goal=f"{name} has a table of goods with their numbers and prices. Put the sum of the prices, its "
        f"third column, into the cell {cell} and save the table under its name.",
        oracle=[
            *(*_open_csv(name), *keys("right", "right", *["down"] * len(goods))),
            *(TypeText(f"=SUM(C1:C{len(goods)})\n"), *keys("ctrl+s")),
        ],
        files={name: before.encode()},
        milestones={"the sum is there": holds(name, f"{before},,{total}")},
        changed=[name],
    )


def _convert(rng: np.random.Generator, level: int) -> Setup:
    old, new = draw(rng, NOUNS, 2)
    goods = _goods(rng, 3 * level)
    return Setup(
        goal=f"Save the table {old}.csv as an OpenDocument spreadsheet named {new}.ods.",
        oracle=[*_open_csv(f"{old}.csv"), *_save_as(f"{new}.ods")],
        files={f"{old}.csv": lines(map(",".join, goods))},
        milestones={
            "there is a new file": has(f"{new}.ods"),
            "it has the table": _has_rows(f"{new}.ods", goods),
        },
        changed=[f"{new}.ods"],
    )


def _sheet_task(
    goal: str, name: str, before: list[list[str]], after: list[list[str]], work: list[Action]
) -> Setup:
    return Setup(
        goal=f"{goal} Save the spreadsheet under its name.",
        oracle=[*_open("libreoffice-calc", name), *work, *keys("ctrl+s")],
        files={name: sheet(before)},
        milestones={"the table is changed so": _has_rows(name, after)},
        changed=[name],
    )


def _change_cells(rng: np.random.Generator, level: int) -> Setup:
    name, before = f"{draw(rng, NOUNS, 1)[0]}.ods", _goods(rng, 5 * level)
    after, said = [list(row) for row in before], list[str]()
    work, at = keys("ctrl+home", "right", "right"), 0
    for number in sorted(int(n) for n in rng.choice(len(before), level, replace=False)):
        price = after[number][2] = str(rng.integers(401, 900))
        said.append(f"the price (column C) of {before[number][0]} to {price}")
        work += [*keys(*["down"] * (number - at)), TypeText(f"{price}\n")]
        at = number + 1
    return _sheet_task(f"In {name}, change {' and '.join(said)}.", name, before, after, work)


def _product_column(rng: np.random.Generator, level: int) -> Setup:
    name, before = f"{draw(rng, NOUNS, 1)[0]}.ods", _goods(rng, 2 + 2 * level)
    after = [[*row, str(int(row[1]) * int(row[2]))] for row in before]
    formulas = "".join(f"=B{n}*C{n}\n" for n in range(1, len(before) + 1))
    goal = f"In {name}, fill the column D: in each row the number (column B) times the price (column C)."
    return _sheet_task(
        goal, name, before, after, [*keys("ctrl+home", "right", "right", "right"), TypeText(formulas)]
    )


def _most_expensive(rng: np.random.Generator, level: int) -> Setup:
    name, goods = f"goods-{rng.integers(10, 100)}.ods", _goods(rng, 9 + 6 * level)
    for row, price in zip(goods, rng.choice(np.arange(10, 400), len(goods), replace=False), strict=True):
        row[2] = str(price)
    best = max(goods, key=lambda row: int(row[2]))[0]
    return Setup(
        goal=f"Which of the goods in the spreadsheet {name} has the highest price (column C)? Answer "
        "with its name.",
        oracle=[*_open("libreoffice-calc", name), Answer(best)],
        files={name: sheet(goods)},
        answer=best,
    )


def _write(rng: np.random.Generator, level: int) -> Setup:
    name, paragraphs = f"{draw(rng, NOUNS, 1)[0]}.odt", sentences(rng, 1 + level)
    said = ", then ".join(f'"{paragraph}"' for paragraph in paragraphs)
    return Setup(
        goal=f"Write a document with these paragraphs and save it as {name} in the home folder: {said}",
        oracle=[OpenApp("libreoffice-writer"), TypeText("\n".join(paragraphs)), *_save_as(name)],
        milestones={"there is a document": has(name), "it says so": _has_paragraphs(name, paragraphs)},
        changed=[name],
    )


def _document_task(
    goal: str, name: str, before: list[str], milestones: dict[str, Predicate], work: list[Action]
) -> Setup:
    return Setup(
        goal=f"{goal} Save the document under its name.",
        oracle=[*_open("libreoffice-writer", name), *work, *keys("ctrl+s")],
        files={name: text(before)},
        milestones=milestones,
        changed=[name],
    )


def _append(rng: np.random.Generator, level: int) -> Setup:
    name, before, new = f"{draw(rng, NOUNS, 1)[0]}.odt", sentences(rng, 3 * level), sentences(rng, level)
    said = " and ".join(f'"{one}"' for one in new)
    work = [*keys("ctrl+end"), TypeText("".join(f"\n{one}" for one in new))]
    reached = {"they are there": _has_paragraphs(name, [*before, *new])}
    return _document_task(f"Add these paragraphs at the end of {name}: {said}.", name, before, reached, work)


def _heading(rng: np.random.Generator, level: int) -> Setup:
    name, title = draw(rng, NOUNS, 2)
    name, before = f"{name}.odt", [f"About the {title}", *sentences(rng, 2 * level)]
    reached: dict[str, Predicate] = {"it is a heading": lambda tree: headings_of(tree, name) == before[:1]}
    goal = f"Make the first line of {name} a heading: give it the paragraph style “Heading 1”."
    return _document_task(goal, name, before, reached, keys("ctrl+home", "ctrl+1"))


def _bold(rng: np.random.Generator, level: int) -> Setup:
    name, before = f"{draw(rng, NOUNS, 1)[0]}.odt", sentences(rng, 2 + 2 * level)
    number = int(rng.integers(1, len(before)))
    reached: dict[str, Predicate] = {
        "it is bold": lambda tree: styled(tree, name, "font-weight", "bold") == [before[number]]
    }
    goal = f'Make the paragraph "{before[number]}" of {name} bold, and nothing else.'
    work = keys("ctrl+home", *["ctrl+down"] * number, "shift+end", "ctrl+b")
    return _document_task(goal, name, before, reached, work)


def _to_word(rng: np.random.Generator, level: int) -> Setup:
    old, new = draw(rng, NOUNS, 2)
    paragraphs = sentences(rng, 3 * level)
    return Setup(
        goal=f"Save the document {old}.odt as {new}.docx, in the format of Microsoft Word.",
        oracle=[*_open("libreoffice-writer", f"{old}.odt"), *_save_as(f"{new}.docx")],
        files={f"{old}.odt": text(paragraphs)},
        milestones={
            "there is a new file": has(f"{new}.docx"),
            "it has the text": _has_paragraphs(f"{new}.docx", paragraphs),
        },
        changed=[f"{new}.docx"],
    )


TASKS = [
    DesktopTask("calc_total", _CALC, _total),
    DesktopTask("calc_convert", _CALC, _convert),
    DesktopTask("calc_change_cells", _CALC, _change_cells),
    DesktopTask("calc_product_column", _CALC, _product_column),
    DesktopTask("calc_most_expensive", _CALC, _most_expensive),
    DesktopTask("writer_write", _WRITER, _write),
    DesktopTask("writer_append", _WRITER, _append),
    DesktopTask("writer_heading", _WRITER, _heading),
    DesktopTask("writer_bold", _WRITER, _bold),
    DesktopTask("writer_to_word", _WRITER, _to_word),
]
