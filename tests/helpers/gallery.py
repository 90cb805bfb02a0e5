"""An app of the emulated desktop that has every widget and remembers every event; a desktop that shows it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from vlrl.envs.gui.actions import Action, Click, Wait
from vlrl.envs.gui.emu.app import APPS, App, Reader, System
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.input.events import Event, KeyPress
from vlrl.envs.gui.emu.oracle.intents import Intent
from vlrl.envs.gui.emu.oracle.reach import Locator
from vlrl.envs.gui.emu.task import TEMPLATES, Draw, Setup, Template
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Button,
    Canvas,
    Check,
    Choice,
    Column,
    Divider,
    Entry,
    Grid,
    Image,
    Label,
    Line,
    Link,
    MenuBar,
    MenuItem,
    Progress,
    Radio,
    Row,
    Rows,
    ScrollArea,
    Slider,
    Widget,
    spinner,
    tabs,
    tool_bar,
)
from vlrl.envs.gui.emu.windows.menus import edit_items
from vlrl.envs.gui.screen import Element, Form
from vlrl.types import ByteArray

PLAIN = {
    "theme": "daylight",
    "font": "sans",
    "font_size": 13,
    "scale": 100,
    "language": "en",
    "bar_side": "bottom",
    "menus": "bar",
    "tools": "forward",
    "title_buttons": "right",
    "wallpaper": "plain",
    "widgets": "classic",
    "windows": "one",
}
TABS = (("first", "First"), ("second", "Second"), ("third", "Third"))
PETS = (("cat", "Cat"), ("dog", "Dog"), ("owl", "Owl"))


@dataclass(frozen=True)
class Gallery:
    page: str = "first"
    agreed: bool = False
    pet: str = "cat"
    level: int = 50
    count: int = 3
    city: str = ""
    story: str = "one two three\nfour five six"
    chosen: int | None = None
    many: tuple[int, ...] = ()
    events: tuple[Event, ...] = ()


def paint_dots(width: int, height: int, image: object) -> ByteArray:
    pixels = np.full((height, width, 3), 200, np.uint8)
    assert isinstance(image, tuple)
    for x, y in image:
        pixels[y : y + 2, x : x + 2] = 0
    return pixels


def build(state: Gallery, reader: Reader) -> Widget:
    row_menu = (MenuItem("remove", "Remove"), MenuItem("rename", "Rename"))
    pages: dict[str, Widget] = {
        "first": Column(
            Row(Button("press", "Press me"), Button("off", "Off", enabled=False), Link("more", "More")),
            Check("agreed", "Agree", state.agreed),
            Row(*(Radio("pet", key, name, state.pet) for key, name in PETS)),
            Choice("pet", "Pet", PETS, state.pet),
            Slider("level", "Level", state.level, step=5),
            spinner("count", "Count", state.count, 0, 5),
            Progress("Done", state.level),
            Entry("city", "City", state.city, hint="Where"),
            Entry("story", "Story", state.story, lines=4, grow=1),
        ),
        "second": Row(
            Rows(
                "chosen", "Numbers", [Line(n, (f"Row {n}",)) for n in range(40)], state.chosen, menu=row_menu
            ),
            Rows(
                "many",
                "Table",
                [Line(n, (f"Cell {n}", str(n * n)), icon="file") for n in range(30)],
                state.many,
                columns=(("Name", 0), ("Square", 50)),
                many=True,
                drags=True,
            ),
            grow=1,
        ),
        "third": Column(
            Grid(3, *(Button(f"key{n}", str(n), grow=1) for n in range(6))),
            Canvas("board", "Board", paint_dots, ((5, 5),), (120, 60)),
            ScrollArea("long", Column(*(Check(f"line{n}", f"Line {n}", False) for n in range(30)))),
            Image("folder", "A folder"),
        ),
    }
    deep = MenuItem("deeper", "Deeper", items=(MenuItem("deepest", "Deepest"),))
    return Column(
        MenuBar(
            (
                "file",
                "File",
                (MenuItem("save", "Save", "ctrl+s"), SEPARATOR, MenuItem("no", "No", enabled=False), deep),
            ),
            ("edit", "Edit", edit_items()),
        ),
        tool_bar(Button("save", "Save", kind="tool", icon="save", show_name=False)),
        Divider(),
        tabs("page", TABS, state.page),
        pages[state.page],
        Label(f"{len(state.events)} {reader.data} {len(reader.list('/Documents'))}", "small"),
    )


def handle(state: Gallery, event: Event, system: System) -> Gallery:
    if event == KeyPress("f9"):  # changes nothing but what is kept beyond the window
        system.keep((system.data or 0) + 1)
        return state
    return dataclasses.replace(state, events=(*state.events, event))


GALLERY = App(
    "gallery", "Gallery", "picture", lambda argument, reader: Gallery(), build, handle, size=(440, 400)
)


class Bench:
    """A desktop with the gallery on it, and hands that find widgets by their ids."""

    def __init__(self, page: str = "first", **options: Any) -> None:
        self.options = options
        self.desktop = desktop = desktop_of(**options)
        desktop.reset({"name": "test/gallery"}, 0)
        if page != "first":
            self.click(f"page.{page}")

    @property
    def state(self) -> Gallery:
        found = self.desktop.world.app("gallery")
        assert isinstance(found, Gallery)
        return found

    @property
    def last(self) -> Event:
        return self.state.events[-1]

    def do(self, *actions: Action) -> Bench:
        for action in actions:
            self.desktop.perform(action)
        return self

    def want(self, *intents: Intent) -> Bench:
        """Do what oracles do."""
        for intent in intents:
            is_last = False
            while not is_last:
                action, is_last = intent(Locator(self.desktop._scene, self.desktop.world))
                self.desktop.perform(action)
        return self

    def is_painted(self) -> bool:
        """Whether the screen is as a desktop shows it that has painted nothing before."""
        fresh = desktop_of(**self.options)
        fresh.restore(self.desktop.snapshot())
        return np.array_equal(fresh.perform(Wait(0)).pixels, self.desktop.perform(Wait(0)).pixels)

    def where(self, id: str) -> tuple[int, int]:
        """The middle of a widget on the screen."""
        x0, y0, x1, y1 = self.box(id)
        return (x0 + x1) // 2, (y0 + y1) // 2

    def box(self, id: str) -> tuple[int, int, int, int]:
        found = Locator(self.desktop._scene, self.desktop.world).find(id)
        assert found is not None, id
        layer, placed = found
        x, y, _, _ = layer.box
        return placed.box[0] + x, placed.box[1] + y, placed.box[2] + x, placed.box[3] + y

    def click(self, id: str, **options: Any) -> Bench:
        return self.do(Click(self.where(id), **options))

    def element(self, role: str, name: str) -> Element:
        found = [e for e in self.desktop.elements() if (e.role, e.name) == (role, name)]
        assert found, (role, name)
        return found[-1]


def gallery_setup(draw: Draw) -> Setup:
    return Setup(
        "Look around.",
        [],
        {"never": lambda world: False},
        windows=[("gallery", "")],
        files={"/Documents/a.txt": "alpha", "/Documents/b.txt": "beta", "/Desktop/c.txt": "gamma"},
    )


def known(patch: pytest.MonkeyPatch) -> None:
    """Make the gallery an app, and a task of it known, as long as the patch lasts."""
    patch.setitem(APPS, "gallery", GALLERY)
    patch.setitem(
        TEMPLATES, "test/gallery", Template("test/gallery", gallery_setup, (1,), ("desktop", "mobile"))
    )


def desktop_of(form: Form = "desktop", **options: Any) -> Desktop:
    backend = EmuEnv(form=form, tasks="test/gallery", **{**PLAIN, **options}).backend
    assert isinstance(backend, Desktop)
    return backend
