"""The keyboard on a phone's screen: when it is there, what its keys write, that one sees what one types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from at_work import PLAIN, do, running
from gallery import Bench
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, SystemButton, TypeText, Wait
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.input.events import Activate
from vlrl.envs.gui.emu.oracle.intents import click
from vlrl.envs.gui.emu.oracle.reach import Locator
from vlrl.envs.gui.emu.task import TEMPLATES
from vlrl.envs.gui.emu.variation import LEAST, Variation
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.windows.screen_keyboard import KEYBOARD, LETTERS, MORE, SYMBOLS

MakeBench = Callable[..., Bench]
TOUCH = {"form": "mobile", "keyboard": "screen"}


def is_shown(desk: Bench) -> bool:
    return desk.desktop._scene.layer(desk.desktop.world, KEYBOARD) is not None


def tap(desk: Bench, *keys: str) -> None:
    for key in keys:
        desk.click(f"key:{key}")


def write(desk: Bench, text: str) -> None:
    """Tap each letter on the page that has it, the letters first."""
    for letter in text:
        key, changes = "space" if letter == " " else letter, iter(("shift", "page", "more"))
        while Locator(desk.desktop._scene, desk.desktop.world).find(f"key:{key}") is None:
            tap(desk, next(changes))
        tap(desk, key)
        keys = desk.desktop.world.keyboard
        if keys is not None and keys.page in ("symbols", "more"):
            tap(desk, "page")


def test_it_comes_with_the_field_and_back_hides_it_alone(bench: MakeBench) -> None:
    desk = bench(**TOUCH)
    assert not is_shown(desk)
    assert is_shown(desk.click("city"))
    desk.do(SystemButton("back"))
    assert not is_shown(desk) and desk.desktop.world.app("gallery")
    assert not desk.desktop.world.windows[-1].is_minimized
    assert not is_shown(desk.do(TypeText("Oslo"))) and desk.state.city == "Oslo"
    assert is_shown(desk.click("city"))
    assert not is_shown(desk.click("agreed"))  # what has the keys now takes no text
    assert not is_shown(desk.click("city").do(SystemButton("home")))


def test_without_the_option_and_on_a_desktop_there_is_none(bench: MakeBench) -> None:
    assert Variation({}).draw(5)["keyboard"] == "none"
    for options in ({"form": "mobile"}, {"keyboard": "screen"}, {"form": "mobile", "keyboard": "none"}):
        assert not is_shown(bench(**options).click("city"))


def test_its_keys_write_what_is_on_them(bench: MakeBench) -> None:
    desk = bench(**TOUCH).click("city")
    write(desk, "No. 7, Bergen & co?")
    assert desk.state.city == "No. 7, Bergen & co?"
    tap(desk, "erase", "erase")
    assert desk.state.city == "No. 7, Bergen & c"
    tap(desk, "shift", "shift", "x", "enter")
    assert desk.last == Activate("city", "No. 7, Bergen & cx")
    desk.do(Click(desk.where("key:space")), TypeText("!"))  # keys and typing go together
    assert desk.state.city == "No. 7, Bergen & cx !"


def test_the_window_is_moved_up_so_that_one_sees_what_one_types() -> None:
    desktop = running("editor", "mobile", {**PLAIN, "keyboard": "screen"})
    do(desktop, click("text"))
    begun = desktop.world.keyboard
    assert begun is not None and begun.pan == 0
    desktop.perform(TypeText("A line of text\n" * 40))
    keys, found = desktop.world.keyboard, Locator(desktop._scene, desktop.world).find("text")
    assert keys is not None and found is not None and isinstance(found[1].widget, Entry)
    layer, placed = found
    caret = placed.widget.place_of(placed.widget.cursor(layer.view).caret, placed.box, layer.view)
    top = desktop._scene.layer(desktop.world, KEYBOARD)
    assert keys.pan > 0 and top is not None and layer.box[1] + caret[1] < top.box[1]
    desktop.perform(SystemButton("back"))
    after = Locator(desktop._scene, desktop.world).find("text")
    assert after is not None and after[0].box[1] == layer.box[1] + keys.pan  # at its place again


@pytest.mark.parametrize("language", sorted(LETTERS))
def test_every_key_of_every_page_can_be_hit_and_writes(bench: MakeBench, language: str) -> None:
    desk = bench(language=language, size=LEAST["mobile"][125], **TOUCH).click("city")
    written = ""
    for page, rows in (("", LETTERS[language]), ("page", SYMBOLS), ("more", MORE)):
        if page:
            tap(desk, page)
        for letter in "".join(rows):
            tap(desk, letter)
            written += letter
    assert desk.state.city == written


def test_what_lies_under_it_is_covered_and_it_is_painted(bench: MakeBench) -> None:
    desk = bench("second", **TOUCH)
    desk.click("page.first").click("city")
    names = {e.name for e in desk.desktop.elements() if e.role == "button"}
    assert {"q", "Shift", "Backspace", "Enter", "Space", "Symbols"} <= names
    story = desk.element("textbox", "Story")
    assert "clipped" in story.states or story.box[3] <= desk.box(KEYBOARD)[1]
    for key in ("q", "shift", "Q", "page", "more"):
        tap(desk, key)
        assert desk.is_painted()


def first_screens(**options: Any) -> list[np.ndarray]:
    desktop = EmuEnv(form="mobile", tasks="contacts/*", **options).backend
    assert isinstance(desktop, Desktop)
    return [desktop.reset({}, seed).pixels for seed in range(3)] + [desktop.perform(Wait(0)).pixels]


def test_screens_begin_as_they_do_without_it() -> None:
    pairs = zip(first_screens(), first_screens(keyboard="screen"), strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)


def test_tasks_are_done_in_spite_of_it() -> None:
    large = {"scale": 125, "font_size": 14, "font": "roman", "size": LEAST["mobile"][125]}
    names = ["contacts/add", "editor/add_line", "forms/checkout", "mail/write"]
    assert failures("mobile", names, 2, keyboard="screen", **large) == []


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("family", ["classic", "fluent", "aqua", "adwaita"])
def test_every_task_with_it_on_the_least_screen(family: str) -> None:
    looks = {"scale": 125, "font_size": 14, "font": "roman", "language": "de", "widgets": family}
    names = [name for name, one in sorted(TEMPLATES.items()) if "mobile" in one.forms]
    failed = failures("mobile", names, 4, keyboard="screen", size=LEAST["mobile"][125], **looks)
    assert not failed, "\n".join(failed)
