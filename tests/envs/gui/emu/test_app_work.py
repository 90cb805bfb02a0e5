"""Files, the calculator and the calendar by their own keys and menus."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from vlrl.envs.gui.actions import Key, TypeText
from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.app import System
from vlrl.envs.gui.emu.apps.calculator import written
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.input.events import Change, Command, Drop, Event, Reply
from vlrl.envs.gui.emu.state import World


def opened(app: str, argument: str = "", files: Sequence[str] = ()) -> tuple[Desktop, World]:
    """An empty desktop with files and a window, number 1."""
    desktop = EmuEnv(tasks="desktop/open_app", language="en").backend
    assert isinstance(desktop, Desktop)
    desktop.reset({}, 0)
    world = desktop.world._replace(files={"/Documents": desktop.world.files["/Documents"]})
    window = update.launch(world, app, argument)
    system = System(window, window.windows[-1])
    for path in files:
        system.write(path, path)
    return desktop, system.world


def after(world: World, *events: Event) -> World:
    """The world after the window has handled them."""
    for event in events:
        world = update.deliver(world, 1, event)
    return world


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("12+30=", "42"),
        ("2+3*4=", "20"),
        ("1/4=", "0.25"),
        ("1/0=", "Error"),
        ("1/0=7", "7"),
        (".5+.25=", "0.75"),
        ("200*15%=", "30"),
        ("9-12=", "-3"),
        ("1/3=", "0.333333333333"),
        ("5+=", "10"),
        ("=", "0"),
    ],
)
def test_the_calculator_by_its_keys(typed: str, shown: str) -> None:
    desktop, world = opened("calculator")
    desktop.restore(desktop.snapshot()._replace(world=world))
    desktop.perform(TypeText(typed))
    assert desktop.world.app("calculator").shown == shown


def test_the_calculator_erases_and_remembers() -> None:
    desktop, world = opened("calculator")
    desktop.restore(desktop.snapshot()._replace(world=world))
    desktop.perform(TypeText("123"))
    desktop.perform(Key(("backspace",)))
    world = after(desktop.world, Command("key.memory_add"), Command("key.clear"))
    assert world.app("calculator").shown == "0" and world.store["calculator"].memory == "12"
    world = after(world, Command("key.memory_recall"), Command("key.sign"), Command("key.memory_less"))
    assert world.app("calculator").shown == "-12" and world.store["calculator"].memory == "24"
    assert written(Decimal(10) ** 30).endswith("e+30")


def test_files_never_overwrites() -> None:
    _, world = opened("files", "/Documents", ["/Documents/a.txt", "/Documents/b.txt", "/Documents/F/a.txt"])
    world = after(world, Drop("chosen", "/Documents/a.txt", "/Documents/F"))
    assert world.read("/Documents/F/a.txt") == "/Documents/F/a.txt"
    assert world.read("/Documents/F/a (2).txt") == "/Documents/a.txt"
    into_itself = after(world, Drop("tree", "/Documents/F", "/Documents/F"))
    assert into_itself.files == world.files
    world = after(world, Change("chosen", ("/Documents/b.txt",)), Command("copy"), Command("paste"))
    assert world.read("/Documents/b (2).txt") == "/Documents/b.txt"
    for name in ("", "  ", "a/b"):
        assert after(world, Command("rename"), Reply("rename", name)).files == world.files


def test_the_trash_gives_back_and_forgets() -> None:
    _, world = opened("files", "/Documents", ["/Documents/a.txt", "/Documents/sub/a.txt"])
    world = after(world, Change("chosen", ("/Documents/a.txt", "/Documents/sub")), Command("delete"))
    assert world.read("/Trash/a.txt") == "/Documents/a.txt" and "/Documents/sub/a.txt" not in world.files
    in_trash = after(world, Change("tree", "/Trash"), Change("chosen", ("/Trash/sub",)), Command("restore"))
    assert in_trash.read("/Documents/sub/a.txt") == "/Documents/sub/a.txt"
    emptied = after(in_trash, Reply("empty", "yes"))
    assert "/Trash/a.txt" not in emptied.files and emptied.store["files"] == ()
    kept = after(world, Change("tree", "/"), Change("chosen", ("/Documents",)), Command("delete"))
    assert "/Documents" in kept.files


def test_the_calendar_turns_and_keeps() -> None:
    _, world = opened("calendar")
    world = after(world, *[Command("back")] * 3)
    assert world.app("calendar").month == (2025, 12)
    world = after(world, Command("new"), Change("title", "Tea"), Change("day", "2026-02-30"), Command("save"))
    assert not world.store.get("calendar")  # there is no such day
    world = after(world, Change("day", "2026-02-28"), Change("time", "10:00"), Command("save"))
    assert world.store["calendar"] == (("2026-02-28", "10:00", "Tea"),)
    assert world.app("calendar").month == (2026, 2)
    world = after(world, Drop("day.2026-02-03", 0, None))
    assert world.store["calendar"][0].day == "2026-02-03"
    assert after(world, Command("delete")).store["calendar"] == ()


def test_the_editor_replaces_all() -> None:
    _, world = opened("editor")
    world = after(world, Change("text", "a b a"), Command("find"), Command("replace_all"))
    assert world.app("editor").text == "a b a"  # nothing is searched for
    world = after(world, Change("query", "a"), Change("other", "cc"), Command("replace_all"))
    assert world.app("editor").text == "cc b cc"
    assert not after(world, Command("find")).app("editor").is_finding
