"""The spreadsheet: formulas, rows, what is typed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.envs.gui.actions import Action, Click, Key, TypeText
from vlrl.envs.gui.emu.apps.parts.formulas import Cells, shown
from vlrl.envs.gui.emu.apps.parts.tables import (
    dumped,
    in_order,
    parsed,
    typed,
    value,
    with_cell,
    with_row,
    without_row,
)
from vlrl.envs.gui.emu.apps.spreadsheet import Sheet
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv

TABLE: Cells = (("Item", "Price"), ("Bread", "3"), ("Milk", "1.5"), ("Cake", "12"))


@pytest.mark.parametrize(
    ("formula", "result"),
    [
        ("=SUM(B2:B4)", "16.5"),
        ("=sum(b4:b2) * 2 - 3", "30"),
        ("=AVERAGE(B2,B4)", "7.5"),
        ("=MIN(B1:B4)+MAX(B2:B4)/-4", "-1.5"),
        ("=(B2+B3)*(2-4)", "-9"),
        ("=0.1+0.2", "0.3"),
        ("=B9", "0"),
        ("=COUNT(A1:B4)", "3"),
        ("=B2/B9", "#DIV/0!"),
        ("=AVERAGE(A1:A4)", "#DIV/0!"),
        ("=A1+1", "#VALUE!"),
        ("=C1", "#CYCLE!"),
        ("=SUM(C1:C2)", "#CYCLE!"),
        ("=B0", "#REF!"),
        ("=FOO(1)", "#NAME?"),
        ("=1+", "#ERROR!"),
        ("=" + "(" * 500, "#ERROR!"),
        ("=__import__", "#ERROR!"),
        ("=" + "9" * 400, "#NUM!"),
    ],
)
def test_formulas(formula: str, result: str) -> None:
    assert value(with_cell(TABLE, "C1", formula), "C1") == result


@given(st.text(st.sampled_from("=+-*/(),:AB12 SUM.\"'é"), max_size=30))
def test_any_text_shows_something(text: str) -> None:
    assert isinstance(shown(with_cell(TABLE, "C1", text), 2, 0), str)


@given(st.lists(st.lists(st.text(st.sampled_from('ab12," \n'), max_size=4), max_size=6), max_size=8))
@settings(max_examples=50)
def test_a_table_comes_back_from_its_file(rows: list[list[str]]) -> None:
    cells = parsed(dumped(tuple(map(tuple, rows))))
    assert parsed(dumped(cells)) == cells


def test_references_follow_their_rows() -> None:
    cells = with_cell(with_cell(TABLE, "B5", "=SUM(B2:B4)"), "C2", "=B2*2")
    assert typed(with_row(cells, 2), "B6") == "=SUM(B2:B5)"
    assert value(without_row(cells, 1), "B4") == "#REF!"
    assert typed(without_row(cells, 2), "C2") == "=B2*2"
    ordered = in_order(with_cell(TABLE, "C2", "=B2*2"), 1, False)
    assert [row[0] for row in ordered] == ["Item", "Milk", "Bread", "Cake"] and value(ordered, "C3") == "6"
    assert [row[0] for row in in_order(TABLE, 1, True)] == ["Item", "Cake", "Bread", "Milk"]


def spreadsheet() -> Desktop:
    env = EmuEnv(tasks="sheet/set_cells", difficulty=1, scale=100, language="en", menus="bar")
    desktop = env.backend
    assert isinstance(desktop, Desktop)
    desktop.reset({}, 3)
    return desktop


def sheet(desktop: Desktop) -> Sheet:
    state = desktop.world.app("spreadsheet")
    assert isinstance(state, Sheet)
    return state


def cell(desktop: Desktop, name: str) -> Action:
    box = next(e.box for e in desktop.elements() if e.role == "gridcell" and e.name == name)
    return Click(((box[0] + box[2]) // 2, (box[1] + box[3]) // 2))


def test_what_is_typed_goes_into_the_marked_cell() -> None:
    desktop = spreadsheet()
    before = sheet(desktop).cells
    for action in (cell(desktop, "D2"), TypeText("7"), Key(("tab",)), TypeText("=D2*6\n")):
        desktop.perform(action)
    assert sheet(desktop).at == "E3" and value(sheet(desktop).cells, "E2") == "42"
    desktop.perform(Key(("up",)))
    assert sheet(desktop).formula == "=D2*6"
    for action in (
        TypeText("1"),
        Key(("escape",)),
        cell(desktop, "D2"),
        Key(("delete",)),
        cell(desktop, "A1"),
    ):
        desktop.perform(action)
    assert with_cell(sheet(desktop).cells, "E2", "") == before


def test_changes_are_not_lost_without_asking() -> None:
    desktop = spreadsheet()
    for action in (cell(desktop, "D2"), TypeText("7"), Key(("alt", "f4"))):
        desktop.perform(action)
    path = sheet(desktop).path
    assert desktop.world.app("dialog.message") is not None
    desktop.perform(Key(("enter",)))
    assert not desktop.world.windows and value(parsed(desktop.world.read(path)), "D2") == "7"
