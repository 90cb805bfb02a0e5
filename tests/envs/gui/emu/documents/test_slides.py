"""The slides app by its events, its keys and its drawing."""

from __future__ import annotations

from typing import Any

import pytest
from emu_documents import after, desktop_with
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, Drag, Key, TypeText
from vlrl.envs.gui.emu import limits
from vlrl.envs.gui.emu.apps.documents.deck import DESIGNS, Deck, Slide
from vlrl.envs.gui.emu.apps.documents.slides import MOST_SLIDES, UNDO_STEPS
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.input.events import Change, Command, Drop
from vlrl.envs.gui.emu.state import World
from vlrl.errors import ConfigError

PATH = "/Documents/a.odp"
DECK = Deck((Slide("One", ("a", "b")), Slide("Two"), Slide("Three", (), "say it")))
NAMES = ["slides/add_point", "slides/new_slide", "slides/reorder"]


def opened(deck: Deck = DECK, **options: Any) -> Desktop:
    return desktop_with("slides", {PATH: deck}, PATH, **options)


def titles(world: World) -> list[str]:
    return [slide.title for slide in world.app("slides").slides]


def middle(desktop: Desktop, role: str, name: str) -> tuple[int, int]:
    found = next(e for e in desktop.elements() if (e.role, e.name) == (role, name))
    return (found.box[0] + found.box[2]) // 2, (found.box[1] + found.box[3]) // 2


def test_slides_are_added_copied_moved_deleted_and_taken_back() -> None:
    start = opened().world
    world = after(start, Change("slide", 1), Command("new_slide"), Command("up"))
    assert titles(world) == ["One", "", "Two", "Three"]
    world = after(world, Command("delete"), Command("duplicate"))
    assert titles(world) == ["One", "Two", "Two", "Three"]
    world = after(world, Drop("slide", 2, 0), Drop("slide", 2, 99))
    assert titles(world) == ["Three", "One", "Two", "Two"]
    for _ in range(5):
        world = after(world, Command("undo"))
    assert world.app("slides").content == DECK and not world.app("slides").before
    alone = after(start, *[Command("delete")] * 5)
    assert len(titles(alone)) == 1  # the last one stays


def test_what_is_typed_on_a_slide_is_its_text_wherever_it_is_moved() -> None:
    desktop = opened()
    desktop.perform(Key(("down",)))
    desktop.perform(Click(middle(desktop, "textbox", "Title"), count=3))
    desktop.perform(TypeText("Second"))
    desktop.perform(Key(("enter",)))  # to the points
    desktop.perform(TypeText("x\ny"))
    desktop.restore(desktop.snapshot()._replace(world=after(desktop.world, Command("up"))))
    assert desktop.world.app("slides").slides[0] == Slide("Second", ("x", "y"))
    desktop.perform(Key(("ctrl", "z")))  # of the text, in the same slide
    assert desktop.world.app("slides").slides[0].title == "Second"
    assert desktop.world.app("slides").slides[0].points in ((), ("x", ""))
    desktop.perform(Key(("ctrl", "s")))
    saved: Any = desktop.world.read(PATH)
    assert [slide.title for slide in saved.slides] == ["Second", "One", "Three"]


def test_a_slide_is_dragged_among_the_small_ones() -> None:
    desktop = opened()
    desktop.perform(Drag((middle(desktop, "option", "One"), middle(desktop, "option", "Three"))))
    assert titles(desktop.world) == ["Two", "Three", "One"]


def test_the_show_goes_on_by_keys_and_ends_where_it_was() -> None:
    desktop = opened()
    for chord in ("f5", "right", "space", "right", "left"):
        desktop.perform(Key((chord,)))
    assert desktop.world.app("slides").is_shown and desktop.world.app("slides").slide.title == "Two"
    assert [e.name for e in desktop.elements() if e.role == "img"] == ["Two"]
    desktop.perform(Key(("escape",)))
    assert not desktop.world.app("slides").is_shown and desktop.world.app("slides").content == DECK


def test_a_presentation_has_an_end() -> None:
    world = opened().world
    for _ in range(MOST_SLIDES):
        world = after(world, Command("new_slide"))
        if world.windows[-1].reply == "refused":
            break
    assert world.windows[-1].state.text == limits.STORE_FULL
    assert len(titles(world)) == MOST_SLIDES and len(world.app("slides").before) == UNDO_STEPS
    long = after(opened().world, *(Change(f"points.{n}", "x" * 9_990) for n in range(3)))
    assert not long.windows[-1].reply
    assert after(long, Change("notes.0", "y" * 99)).windows[-1].state.text == limits.TOO_LONG


@pytest.mark.parametrize("design", DESIGNS)
def test_a_slide_looks_the_same_under_every_theme_and_differs_from_other_designs(design: str) -> None:
    seen = set()
    for theme in ("daylight", "midnight"):
        desktop = opened(DECK._replace(design=design), theme=theme, font="sans", font_size=13, scale=100)
        desktop.perform(Key(("f5",)))
        screen = desktop.perform(Key(("up",)))
        x0, y0, x1, y1 = next(e.box for e in desktop.elements() if e.role == "img")
        seen.add(screen.pixels[y0 + 2 : y1 - 2, x0:x1].tobytes())
    assert len(seen) == 1
    paper = DESIGNS[design].paper
    assert all(other.paper != paper for key, other in DESIGNS.items() if key != design)


def test_a_presentation_is_opened_from_files_and_not_on_a_phone() -> None:
    assert opened().world.app("slides").content == DECK
    assert opened(form="mobile").world.app("slides") is None
    with pytest.raises(ConfigError, match="slides"):
        EmuEnv(tasks="slides/*", form="mobile")


@pytest.mark.parametrize("family", ["classic", "fluent", "aqua", "adwaita"])
def test_the_tasks_in_the_largest_letters_on_the_least_screen(family: str) -> None:
    looks = {"scale": 125, "font_size": 14, "font": "roman", "language": "de"}
    assert failures("desktop", NAMES, 2, widgets=family, bar_side="left", **looks) == []
