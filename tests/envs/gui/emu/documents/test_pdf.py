"""The document viewer: pages, contents, bookmarks, the search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emu_documents import after, desktop_with
from oracle_plays import failures

from vlrl.envs.gui.actions import Key, Scroll, SystemButton, TypeText
from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.apps.documents.paper import Hit, Page, Paper, found
from vlrl.envs.gui.emu.apps.documents.paper_view import FOUND, FOUND_NOW
from vlrl.envs.gui.emu.apps.documents.pdf import Bookmark
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.files import write
from vlrl.envs.gui.emu.input.events import Activate, Change, Command
from vlrl.envs.gui.emu.task import Draw
from vlrl.envs.gui.emu.tasks.documents.pdf import CHAPTERS, OFTEN, SENTENCES, booklet
from vlrl.types import ByteArray

PATH = "/Documents/a.pdf"
LONG = "A line of text that goes on and on until it has to be broken into several lines of the page. " * 8
PAPER = Paper(
    "Guide",
    (
        Page("One", ("A cat and a dog.",)),
        Page("", ("No animals.",)),
        Page("Two", (LONG, LONG, "A CAT again."), 1),
    ),
)


def opened(**options: Any) -> Desktop:
    return desktop_with("pdf", {PATH: PAPER}, PATH, **options)


def press(desktop: Desktop, *chords: str) -> ByteArray:
    for chord in chords:
        pixels = desktop.perform(Key(tuple(chord.split("+")))).pixels
    return pixels


def lines(desktop: Desktop) -> list[str]:
    return [e.name for e in desktop.elements() if e.role == "text" and e.path[:1] == ("a.pdf",)]


def shows(pixels: ByteArray, colour: tuple[int, int, int]) -> bool:
    return bool((pixels == colour).all(-1).any())


def test_the_search_finds_words_without_regard_to_case_and_goes_round() -> None:
    assert found(PAPER, " CAT ") == (Hit(0, 0, 2), Hit(2, 2, 2)) and found(PAPER, "  ") == ()
    world = after(opened().world, Command("find"), Change("query", "cat"), Activate("query", "cat"))
    pages = [world.app("pdf").page]
    for command in ("find.next", "find.next", "find.back"):
        world = after(world, Command(command))
        pages.append(world.app("pdf").page)
    assert pages == [0, 2, 0, 2]
    world = after(world, Change("query", "horse"), Activate("query", "horse"))
    assert world.app("pdf").hit is None and world.app("pdf").page == 2


def test_what_is_found_is_coloured_and_scrolled_to() -> None:
    desktop = opened(scale=100)
    press(desktop, "ctrl+f")
    desktop.perform(TypeText("cat"))
    pixels = press(desktop, "enter")
    assert shows(pixels, FOUND_NOW) and not shows(pixels, FOUND)
    assert shows(press(desktop, "enter"), FOUND_NOW)  # far below on its page
    desktop.perform(Scroll(0, -3000, (400, 250)))
    assert not shows(press(desktop, "ctrl+alt+x"), FOUND_NOW)  # scrolled away by hand
    assert not shows(press(desktop, "escape"), FOUND)


def test_a_page_has_the_same_lines_at_every_size() -> None:
    seen = set()
    for options in (
        {"scale": 100},
        {"scale": 125, "font_size": 14},
        {"form": "mobile"},
        {"size": (1600, 1200), "windows": "maximised"},
    ):
        desktop = opened(**options)
        press(desktop, "ctrl+l")
        desktop.restore(desktop.snapshot()._replace(world=after(desktop.world, Activate("goto", "3"))))
        seen.add(tuple(line for line in lines(desktop) if line in LONG or "CAT" in line))
    assert len(seen) == 1 and len(seen.pop()) > 20


def test_pages_are_turned_by_keys_numbers_and_contents() -> None:
    desktop = opened()
    pages = []
    for chord in ("page_down", "end", "right", "left", "home", "left"):
        press(desktop, chord)
        pages.append(desktop.world.app("pdf").page)
    assert pages == [1, 2, 2, 1, 0, 0]
    world = after(desktop.world, Change("contents", 2))
    assert world.app("pdf").goto == "3"
    for wrong in ("0", "9", "x", ""):
        again = after(world, Change("goto", wrong), Activate("goto", wrong)).app("pdf")
        assert (again.page, again.goto) == (2, "3")


def test_bookmarks_are_kept_with_their_files() -> None:
    world = after(
        opened().world, Command("next"), Command("bookmark"), Command("previous"), Command("bookmark")
    )
    assert world.store["pdf"] == (Bookmark(PATH, 0), Bookmark(PATH, 1))
    world = after(world, Change("mark", 1), Command("bookmark"))
    assert world.store["pdf"] == (Bookmark(PATH, 0),)


def test_no_file_and_a_file_of_another_kind_show_no_page() -> None:
    world = opened().world
    text = world._replace(files=write(world.files, "/Documents/b.pdf", "no pages", 0))
    for argument in ("/Documents/b.pdf", "/Documents/c.pdf"):
        empty = update.launch(text._replace(windows=()), "pdf", argument).app("pdf")
        assert empty.path == ""
    desktop = opened()
    desktop.restore(desktop.snapshot()._replace(world=update.launch(world._replace(windows=()), "pdf")))
    assert "No file is open." in [e.name for e in desktop.elements()]
    press(desktop, "right", "ctrl+f", "end")
    assert desktop.world.app("pdf").page == 0


def test_a_phone_shows_the_contents_or_the_page() -> None:
    desktop = opened(form="mobile")
    roles = {e.role for e in desktop.elements()}
    assert "document" in roles and "tab" not in roles
    desktop.restore(desktop.snapshot()._replace(world=after(desktop.world, Command("panel"))))
    assert "document" not in {e.role for e in desktop.elements()}
    desktop.perform(SystemButton("back"))
    assert "document" in {e.role for e in desktop.elements()}


def test_the_words_of_the_tasks_are_found_once() -> None:
    """Each fact's by one sentence alone; each of those that are counted in no longer word."""
    facts = [fact.said for fact in CHAPTERS.values()]
    for fact in CHAPTERS.values():
        assert sum(fact.word in said for said in (*facts, *SENTENCES, *CHAPTERS)) == 1
    text = " ".join((*facts, *SENTENCES)).lower()
    for word in OFTEN:
        inside = [found for found in text.replace(",", " ").replace(".", " ").split() if word in found]
        assert inside and set(inside) == {word}
    book = booklet(Draw(np.random.default_rng(1), 3, {}), 11)
    assert len(book.facts) == 11 and max(page for page, *_ in book.facts.values()) < len(book.paper.pages)


@pytest.mark.parametrize("family", ["classic", "fluent", "aqua", "adwaita"])
@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_the_tasks_in_the_largest_letters_on_the_least_screen(form: Any, family: str) -> None:
    looks = {"scale": 125, "font_size": 14, "font": "roman", "language": "de"}
    names = ["pdf/bookmark", "pdf/go_to"]
    assert failures(form, names, 2, widgets=family, bar_side="left", **looks) == []
