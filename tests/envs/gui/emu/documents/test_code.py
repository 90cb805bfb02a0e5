"""The editor of programs: what it finds wrong, its tabs, its searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emu_documents import after, desktop_with
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, Key, TypeText, Wait
from vlrl.envs.gui.emu import limits
from vlrl.envs.gui.emu.apps.code.lint import problems
from vlrl.envs.gui.emu.apps.code.text import DARK, LIGHT, WRONG
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.input.events import Activate, Change, Closing, Command, Open, Reply
from vlrl.envs.gui.emu.task import Draw
from vlrl.envs.gui.emu.tasks.documents.programs import project, slip

ROOT = "/Documents/p"
MAIN, TOOLS = f"{ROOT}/main.py", f"{ROOT}/tools.py"
FILES = {
    MAIN: 'from tools import cost\n\nprint("cost", cost(4))\n',
    TOOLS: "\n" * 60
    + "def cost(amount, rate=3):\n    return amount * rtae  # slip\n\n\ncost_of_all = cost(2)\n",
    f"{ROOT}/data/notes.txt": "nothing here costs",
}


def opened(argument: str = ROOT, **options: Any) -> Desktop:
    return desktop_with("code", FILES, argument, **options)


def press(desktop: Desktop, *chords: str) -> None:
    for chord in chords:
        desktop.perform(Key(tuple(chord.split("+"))))


def middle(desktop: Desktop, role: str, name: str) -> tuple[int, int]:
    found = next(e for e in desktop.elements() if (e.role, e.name) == (role, name))
    return (found.box[0] + found.box[2]) // 2, (found.box[1] + found.box[3]) // 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a, b as c\nfrom d import e\nprint(a, c, e)\n", []),
        ("def f(x, y=1):\n    return x.anything + y\n\n\nf(1, y=2)\n", []),
        ("for n, m in zip([1], [2]):\n    t = (n,\n         m)\n", []),
        ('if "a:" in {1: 2}:\n    pass  # no (bracket\n', []),
        ("class K:\n    def g(self): return self\n", []),
        ('print("""two\nlines (""")\n', []),
        ("with open(1) as f:\n    f.read()\n", []),
        ("def f()\n    pass\n", [(1, "colon", "")]),
        ("else  # what\n", [(1, "colon", "")]),
        ("x = sum((1, 2)\n", [(1, "bracket", "")]),
        ("def f(a):\n    return a)\n", [(2, "bracket", "")]),
        ("print(\n", [(1, "bracket", "")]),
        ("x = [1)\n", [(1, "bracket", "")]),
        ("x = (1,\nreturn 2\n", [(1, "bracket", "")]),
        ("y = x\nx = y + z\n", [(2, "undefined", "z")]),
        ("print(end=1)\nprint(ned)\n", [(2, "undefined", "ned")]),
    ],
)
def test_what_is_wrong_with_a_program(text: str, found: list[tuple[int, str, str]]) -> None:
    assert [(one.line, one.kind, one.name) for one in problems(text)] == found


def test_every_slip_of_the_pen_is_one_problem_and_its_fix_brings_the_program_back() -> None:
    kinds = set()
    for seed in range(60):
        draw = Draw(np.random.default_rng(seed), 1, {})
        for module in project(draw, 2).modules:
            assert problems(module.text) == ()
            if module.functions:
                made = slip(draw, module.text)
                (problem,) = problems(made.text)
                kinds.add(problem.kind)
                fixed = made.text[: problem.start] + made.fixing + made.text[problem.end :]
                assert fixed == module.text
    assert kinds == {"colon", "bracket", "undefined"}


def test_long_and_odd_texts_are_read_in_time() -> None:
    for text in (
        "(" * 9_999,
        ")" * 9_999,
        '"' * 9_999,
        "a=" * 5_000,
        "def " * 2_500,
        "x\n" * 5_000,
        "'''\n" * 2_500,
    ):
        assert len(problems(text[: limits.AREA_CHARS])) <= limits.AREA_CHARS


def test_a_problem_leads_to_its_place_and_typing_fixes_it() -> None:
    desktop = opened()
    desktop.perform(Click(middle(desktop, "row", "“rtae” is not defined")))
    pixels = desktop.perform(Wait(0)).pixels
    assert (pixels == WRONG).all(-1).any()  # in sight, though 60 lines below
    press(desktop, "ctrl+c")
    assert desktop.world.clipboard == "rtae"
    desktop.perform(TypeText("rate"))
    assert not [e for e in desktop.elements() if "is not defined" in e.name]
    assert desktop.world.read(TOOLS) == FILES[TOOLS]  # not saved yet
    press(desktop, "ctrl+s")
    assert desktop.world.read(TOOLS) == FILES[TOOLS].replace("rtae", "rate")
    assert desktop.world.app("code").changed == {}
    press(desktop, "ctrl+z")  # of the text, as in any field
    assert "rtae" in desktop.world.app("code").changed[TOOLS]


def test_whole_words_are_replaced_alone() -> None:
    world = after(opened(TOOLS).world, Command("find"), Change("query", "cost"), Change("other", "fee"))
    everywhere = after(world, Command("replace_all")).app("code").changed[TOOLS]
    assert everywhere == FILES[TOOLS].replace("cost", "fee")
    words = after(world, Change("words", True), Command("replace_all"), Command("save"))
    assert words.read(TOOLS) == everywhere.replace("fee_of_all", "cost_of_all")
    dots = after(world, Change("query", "."), Change("words", False), Command("replace_all"))
    assert not dots.app("code").changed  # no pattern: there is no dot
    long = after(world, Change("query", "\n"), Change("other", "x" * 300), Command("replace_all"))
    assert long.windows[-1].state.text == limits.TOO_LONG


def test_the_search_in_all_files_opens_what_it_found() -> None:
    desktop = opened()
    press(desktop, "ctrl+shift+f")
    desktop.perform(TypeText("cost"))
    names = [e.name for e in desktop.elements() if e.role == "option"]
    assert [name.split()[0] for name in names] == [
        "notes.txt:1",
        "main.py:1",
        "main.py:3",
        "main.py:3",
        *["tools.py:61"],
        *2 * ["tools.py:65"],
    ]
    world = after(desktop.world, Change("match", 4))
    assert world.app("code").path == TOOLS
    cursor = world.windows[-1].interface.cursors[f"text.{TOOLS}"]
    assert FILES[TOOLS][cursor.anchor : cursor.caret] == "cost"


def test_a_line_is_gone_to_and_matches_go_round() -> None:
    desktop = opened(TOOLS)
    world = after(desktop.world, Reply("line", "62"))
    at = world.windows[-1].interface.cursors[f"text.{TOOLS}"].caret
    assert FILES[TOOLS][at:].startswith("    return")
    assert after(world, Reply("line", "x"), Reply("line", None)) == world
    world = after(world, Command("find"), Change("query", "cost"))
    carets = []
    for _ in range(4):
        world = after(world, Activate("query", "cost"))
        carets.append(world.windows[-1].interface.cursors[f"text.{TOOLS}"].anchor)
    assert carets[0] == carets[3] and carets[0] < carets[1] < carets[2]


def test_tabs_keep_their_texts_until_they_are_saved_or_given_up() -> None:
    world = after(
        opened().world, Change("file", MAIN), Change(f"text.{MAIN}", "x = 1\n"), Change("file", TOOLS)
    )
    assert world.app("code").tabs == (MAIN, TOOLS) and world.app("code").path == TOOLS
    asked = after(world, Change("path", MAIN), Command("close_tab"))
    assert asked.windows[-1].reply == "changed" and asked.app("code").tabs == (MAIN, TOOLS)
    given_up = after(asked, Reply("changed", "no")).app("code")
    assert (given_up.tabs, given_up.path, given_up.changed) == ((TOOLS,), TOOLS, {})
    closing = after(world, Closing())
    assert closing.window(1) is not None
    assert after(closing, Reply("changed", "cancel")).app("code").changed
    saved = after(closing, Reply("changed", "yes"))
    assert saved.window(1) is None and saved.read(MAIN) == "x = 1\n"
    back = after(world, Change(f"text.{MAIN}", FILES[MAIN]))
    assert back.app("code").changed == {}


def test_files_are_made_and_opened_and_few_tabs_stay() -> None:
    world = after(opened().world, *(Reply("new", f"m{n}.py") for n in range(7)), Reply("new", "a/b"))
    assert world.app("code").tabs == tuple(f"{ROOT}/m{n}.py" for n in range(2, 7))
    assert world.read(f"{ROOT}/m0.py") == ""
    world = after(world, Command("file.toggle", f"{ROOT}/data"), Open(f"{ROOT}/data/notes.txt"))
    assert world.app("code").path.endswith("notes.txt") and world.app("code").root == ROOT


def test_colours_are_those_of_the_theme() -> None:
    for theme, seen, other in (("daylight", LIGHT, DARK), ("midnight", DARK, LIGHT)):
        pixels = opened(MAIN, theme=theme).perform(Wait(0)).pixels
        for kind in ("keyword", "string", "number"):
            assert (pixels == seen[kind]).all(-1).any() and not (pixels == other[kind]).all(-1).any(), kind


def test_it_does_not_run_on_a_phone() -> None:
    assert opened(form="mobile").world.app("code") is None


@pytest.mark.parametrize("family", ["classic", "fluent", "aqua", "adwaita"])
def test_the_tasks_in_the_largest_letters_on_the_least_screen(family: str) -> None:
    looks = {"scale": 125, "font_size": 14, "font": "roman", "language": "de"}
    names = ["code/change_value", "code/fix_line", "code/rename_symbol"]
    assert failures("desktop", names, 2, widgets=family, bar_side="left", **looks) == []
