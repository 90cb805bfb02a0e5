"""No actions make a desktop larger than its limits, and what is refused is said on the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vlrl.envs.gui.actions import Action, ButtonDown, Click, Drag, Key, Move, OpenApp, Scroll, TypeText
from vlrl.envs.gui.codecs.grammar.parsed_call import MAX_TEXT
from vlrl.envs.gui.emu import limits, update
from vlrl.envs.gui.emu.app import APPS, System
from vlrl.envs.gui.emu.apps.parts.formulas import shown
from vlrl.envs.gui.emu.apps.parts.mailbox import Letter
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.input.events import Change, Command
from vlrl.envs.gui.emu.sites.club import Member
from vlrl.envs.gui.emu.state import Undo, World
from vlrl.envs.gui.emu.update import deliver

MOST = limits.DISK_SIZE + len(APPS) * (limits.STORE_SIZE + limits.UNDO_CHARS) + 31 * 60_000 + 200_000
"""Of a whole world: disk, what apps keep, undo, the images that paint takes back, and what is open."""


PLACES = ("/Documents", "/Downloads")


def desktop(app: str, argument: str = "", **world: Any) -> Desktop:
    """An English desktop with a window of an app, number 1."""
    backend = EmuEnv(tasks="desktop/open_app", language="en").backend
    assert isinstance(backend, Desktop)
    backend.reset({}, 0)
    opened = update.launch(backend.world._replace(**world), app, argument)
    backend.restore(backend.snapshot()._replace(world=opened))
    return backend


def told(world: World) -> str:
    """What the front window says why something was not done; "" if it says nothing of the kind."""
    front = world.windows[-1]
    return front.state.text if front.reply == "refused" else ""


def do(backend: Desktop, *actions: Action) -> World:
    for action in actions:
        backend.perform(action)
    return backend.world


def chord(*names: str) -> list[Action]:
    return [Key(tuple(name.split("+"))) for name in names]


def test_find_and_replace_does_not_square_a_text() -> None:
    """Find "a" and put 200 of them in its place, three times: 8 million characters."""
    world = desktop("editor").world
    for id, text in (("text", "a"), ("query", "a"), ("other", "a" * 200)):
        world = deliver(world, 1, Change(id, text))
    lengths = []
    for _ in range(3):
        world = deliver(world, 1, Command("replace_all"))
        lengths.append(len(world.windows[0].state.text))
    assert lengths == [200, 200, 200] and told(world) == limits.TOO_LONG


def test_pasting_again_and_again_stops_at_the_limit() -> None:
    backend = desktop("editor")
    world = do(backend, TypeText("b" * MAX_TEXT), *chord("ctrl+a", "ctrl+c", *["ctrl+v"] * 8))
    assert limits.AREA_CHARS - MAX_TEXT < len(world.app("editor").text) <= limits.AREA_CHARS
    assert told(world) == limits.TOO_LONG
    world = do(backend, *chord("enter", "ctrl+end", "backspace"))  # it is read, and work goes on
    assert not told(world) and len(world.app("editor").text) == 2 * MAX_TEXT - 1


def test_a_field_of_one_line_is_shorter_than_an_area() -> None:
    backend = desktop("browser")
    world = do(backend, *chord("ctrl+l"), TypeText("c" * limits.FIELD_CHARS))
    assert len(world.app("browser").address) == limits.FIELD_CHARS and not told(world)
    world = do(backend, TypeText("c"))
    assert len(world.app("browser").address) == limits.FIELD_CHARS and told(world) == limits.TOO_LONG


def test_earlier_texts_are_kept_as_far_as_there_is_room() -> None:
    backend = desktop("editor")
    do(backend, TypeText("d" * MAX_TEXT))
    world = do(backend, *(TypeText(letter) for letter in "efgh" * 30))
    kept, undo = [], world.windows[-1].interface.undo
    while isinstance(undo, Undo):
        kept.append(len(undo.text))
        undo = undo.before
    assert 10 < len(kept) <= 100 and sum(kept) <= limits.UNDO_CHARS
    assert do(backend, *chord("ctrl+z")).app("editor").text.endswith("efg")


@pytest.mark.parametrize(
    ("grow", "said"),
    [
        (lambda system, n: system.make_folder(f"/Documents/{n}"), limits.DISK_FULL),
        (lambda system, n: system.copy(PLACES[n % 2], f"{PLACES[1 - n % 2]}/{n}"), limits.DISK_FULL),
        (lambda system, n: system.make_folder("/Documents" + "/name" * n), limits.NAME_TOO_LONG),
    ],
    ids=["folders", "copies of copies", "long names"],
)
def test_the_disk_is_full_one_day(grow: Callable[[System, int], bool], said: str) -> None:
    world = desktop("files", "/Documents").world
    text = world.files["/Documents"]._replace(content="x" * 9000)
    world = world._replace(files={**world.files, "/Documents/big.txt": text})
    for number in range(450):
        system = System(world, world.windows[0])
        grew = grow(system, number)
        world = system.world
        if not grew:
            break
    assert not grew and [argument.partition("\x1f")[0] for _, argument, _, _ in system.to_open] == [said]
    assert limits.disk_refusal(world.files) == ""


def test_a_text_that_does_not_fit_the_disk_is_not_shown_as_saved() -> None:
    full = {f"/Documents/{n}.txt": "y" * 9000 for n in range(limits.DISK_SIZE // 9000)}
    backend = desktop("editor")
    files = backend.world.files
    crowded = {**files, **{path: files["/Documents"]._replace(content=text) for path, text in full.items()}}
    world = backend.world._replace(files=crowded)
    world = deliver(deliver(world, 1, Change("text", "z" * 9000)), 1, Command("save"))
    world = deliver(world, world.windows[-1].number, Command("accept"))
    assert told(world) == limits.DISK_FULL
    assert world.app("editor").is_changed and "/Documents/Untitled.txt" not in world.files


@pytest.mark.parametrize("app", ["mail", "club", "board", "forum"])
def test_what_an_app_keeps_has_an_end(app: str) -> None:
    world = desktop("mail").world
    for number in range(300):
        system = System(world, world.windows[0])
        new: object = Letter(number, "sent", "a@b.example", "s", "t" * 1000)
        if app == "club":
            new = Member("n" * 300, "e" * 300, "p" * 300, 1990, "Egypt", "free")
        kept = system.keep_for(app, (*(world.store.get(app) or ()), new))
        world = system.world
        if not kept:
            break
    assert not kept and limits.size_of(world.store[app]) <= limits.STORE_SIZE
    assert system.to_open[0][1].startswith(limits.STORE_FULL)
    assert System(world, world.windows[0]).keep_for(app, world.store[app][1:])  # less is always taken


def test_keys_that_are_pressed_one_by_one_have_an_end() -> None:
    """4000 answers to an address would be 4000 pages; in an area they are lines, and one step."""
    backend = desktop("browser")
    world = do(backend, *chord("ctrl+l"), TypeText("wiki.example" + "\n" * 300))
    assert told(world) == limits.TOO_MANY_KEYS
    assert len(world.app("browser").shown.history) <= limits.HISTORY
    world = do(desktop("calculator"), TypeText("7+" * 2000))
    assert told(world) == limits.TOO_MANY_KEYS
    world = do(desktop("editor"), TypeText("\n" * MAX_TEXT))
    assert world.app("editor").text == "\n" * MAX_TEXT and not told(world)


def test_a_stroke_has_so_many_places() -> None:
    backend = desktop("paint")
    box = next(e.box for e in backend.elements() if e.role == "img")
    do(backend, Move((box[0] + 5, box[1] + 5)), ButtonDown())
    world = do(backend, *(Move((box[0] + 5 + n % 2, box[1] + 5)) for n in range(limits.STROKE_POINTS + 50)))
    assert world.held is not None and len(world.held.path) == limits.STROKE_POINTS


def test_a_cell_that_many_formulas_need_is_evaluated_once() -> None:
    """Twenty rows of which each needs the row above it 40 times: 40^20 evaluations, one by one."""
    line = "=" + "+".join("A{0}" for _ in range(40))
    cells = (("1",), *((line.format(row),) for row in range(1, 20)))
    assert shown(cells, 0, 19) == f"{40.0**19:.10g}"
    wide = tuple(tuple(f"=SUM(A1:F{row})" if row else "1" for _ in range(6)) for row in range(30))
    assert shown(wide, 0, 29) == f"{6 * 7.0**28:.10g}"
    assert shown((("=B1", "=A1"),), 0, 0) == "#CYCLE!" and shown((("=1/0", "=A1"),), 1, 0) == "#DIV/0!"


IDLE = ("", "heading", "window", "toolbar", "timer")


def used(backend: Desktop, rng: np.random.Generator) -> Action:
    """What fills a machine: long texts into every field, copies, replies, windows."""
    kind = int(rng.integers(12))
    seen = [e for e in backend.elements() if not e.states & {"hidden", "covered", "disabled"}]
    if kind == 0:
        return OpenApp(str(rng.choice([app for app in APPS if APPS[app].is_listed])))
    if kind == 1:
        return Key(("ctrl", str(rng.choice(list("aaccvvvzsnfr")))))
    if kind == 2:
        return Key((str(rng.choice(["enter", "tab", "escape", "delete", "f2"])),))
    if kind in (3, 4, 5):
        piece = str(rng.choice(["a", "\n", "a\n", "7+", "x@y.zz ", "=A1+", "\u00e9", "\U0001f600", "\t"]))
        return TypeText((piece * MAX_TEXT)[: int(rng.choice([1, 8, 250, MAX_TEXT]))])
    targets = [
        e for e in seen if e.role not in ("", "heading", "window", "toolbar", "timer") and e.name != "Close"
    ]
    if not targets:
        return Scroll(0, 300, (300, 200))
    x0, y0, x1, y1 = targets[int(rng.integers(len(targets)))].box
    point = min((x0 + x1) // 2, 639), min((y0 + y1) // 2, 479)
    if kind == 6:
        return Click(point, "right")
    if kind == 7:
        return Drag((point, (int(rng.integers(640)), int(rng.integers(480)))))
    return Click(point, count=int(rng.integers(1, 3)))


@pytest.mark.parametrize("app", [app for app in APPS if APPS[app].is_listed])
def test_whatever_is_done_the_world_stays_small(app: str) -> None:
    backend, rng = desktop(app), np.random.default_rng(sum(app.encode()))
    growth: list[int] = []
    for _ in range(120):
        world = do(backend, used(backend, rng))
        growth.append(limits.size_of(world))
        assert growth[-1] <= MOST and limits.disk_refusal(world.files) == ""
        assert len(world.windows) <= limits.WINDOWS and len(world.clipboard) <= limits.AREA_CHARS
        assert all(limits.size_of(kept) <= limits.STORE_SIZE for kept in world.store.values())
    assert max(growth) > growth[0]
