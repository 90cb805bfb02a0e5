"""The widgets that apps tell of themselves: where they are, what they are called, and what a click meets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from x11_traces import MACHINE

from vlrl.environment.open import open_env
from vlrl.envs.gui.actions import Click, OpenApp, TypeText
from vlrl.envs.gui.screen import Element
from vlrl.envs.gui.x11.desktop import Desktop
from vlrl.errors import ConfigError


@pytest.fixture(scope="module")
def editor() -> Iterator[Desktop]:
    """A desktop with the editor open, whose widgets are told."""
    desktop = Desktop(replace(MACHINE, names_widgets=True))
    desktop.perform(OpenApp("mousepad"))
    yield desktop
    desktop.close()


def found(desktop: Desktop, role: str, name: str = "") -> Element:
    (element,) = [
        one for told in desktop.widgets().values() for one in told if (one.role, one.name) == (role, name)
    ]
    return element


def middle(element: Element) -> tuple[int, int]:
    x0, y0, x1, y1 = element.box
    return (x0 + x1) // 2, (y0 + y1) // 2


def test_a_fields_text_is_its_value(editor: Desktop) -> None:
    editor.perform(TypeText("some words"))
    field = found(editor, "textbox")
    assert field.value == "some words" and "focused" in field.states


def test_a_menu_opens_where_its_item_is_said_to_be(editor: Desktop) -> None:
    names = {one.name for told in editor.widgets().values() for one in told}
    assert "File" in names and "Quit" not in names
    editor.perform(Click(middle(found(editor, "menuitem", "File"))))
    editor.perform(Click(middle(found(editor, "menuitem", "Save As..."))))
    assert [window.title for window in editor.windows()][-1] == "Save As"


def test_a_click_says_which_widget_it_met() -> None:
    env: Any = open_env("gui/x11", {"size": [800, 600], "tasks": "editor_note", "pool": 0, "widgets": True})
    try:
        env.reset({}, 1)
        env.step(env.codec.format(OpenApp("mousepad"), env.view))
        item = next(one for one in env.backend.elements() if one.name == "Search")
        info = env.step(env.codec.format(Click(middle(item)), env.view)).info
        assert info["widget"] == "menuitem Search" and info["widget_box"] == ",".join(map(str, item.box))
    finally:
        env.close()


def test_without_a_bus_there_are_windows_alone(desktop: Desktop) -> None:
    desktop.perform(OpenApp("mousepad"))
    assert desktop.widgets() == {} and len(desktop.windows()) == 1


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None if "registryd" in program else program)
    with pytest.raises(ConfigError, match="apt-get install at-spi2-core libatk-adaptor"):
        open_env("gui/x11", {"tasks": "files_*", "widgets": True})
