"""The widget families: tasks can be done in each, and what is seen is what a fresh screen would show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gallery import Bench
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, Drag, Key, OpenApp, Wait
from vlrl.envs.gui.emu.drawing.family import FAMILIES, Family
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.input.events import Command
from vlrl.envs.gui.emu.oracle.intents import menu
from vlrl.envs.gui.emu.variation import CHOICES, Variation

NEW = [name for name in FAMILIES if name != "classic"]
LARGE = {"scale": 125, "font_size": 14, "font": "roman", "language": "de"}
NAMES = ["basics/click_button", "clock/add_alarm", "editor/save_as", "files/copy", "settings/switch"]


@pytest.mark.parametrize("family", NEW)
def test_tasks_of_every_kind_can_be_done_on_the_least_screen_in_the_largest_letters(family: str) -> None:
    for form in ("desktop", "mobile"):
        assert failures(form, NAMES, 2, widgets=family, **LARGE) == []  # type: ignore[arg-type]


def test_a_family_is_drawn_apart_from_all_other_looks() -> None:
    free, pinned = Variation({}), Variation({"widgets": "classic"})
    drawn = [free.draw(seed) for seed in range(60)]
    assert {looks["widgets"] for looks in drawn} == set(FAMILIES)
    for seed, looks in enumerate(drawn):
        assert {**looks, "widgets": "classic"} == pinned.draw(seed)


@pytest.mark.parametrize("family", NEW)
@pytest.mark.parametrize("page", ["first", "second", "third"])
def test_round_corners_and_shadows_are_those_of_a_fresh_screen(
    bench: Callable[..., Bench], family: str, page: str
) -> None:
    desk = bench(page, widgets=family, bar_side="left")
    desk.do(OpenApp("settings"), OpenApp("files"))
    x, y = desk.where("window.title")
    for action in (Drag(((x, y), (x + 70, y + 45))), Key(("alt", "tab")), Click((x, y), "right")):
        desk.do(action)
        assert desk.is_painted()
    desk.do(Key(("escape",))).click("start")
    assert desk.is_painted()
    desk.do(Key(("down",)), Key(("escape",)), Drag(((x + 70, y + 45), (5, 5))))
    assert desk.is_painted()


@pytest.mark.parametrize("family", NEW)
def test_what_lies_behind_is_seen_at_the_corners_and_darkened_beside_an_edge(
    bench: Callable[..., Bench], family: str
) -> None:
    desk = bench(widgets=family)
    pixels = desk.desktop.perform(Wait(0)).pixels.astype(int)
    x0, y0, x1, _ = next(e.box for e in desk.desktop.elements() if e.role == "window")
    wallpaper = pixels[40, -3].sum()
    assert pixels[y0 + 60, x1 + 1].sum() < wallpaper * 0.9  # beside the right edge
    inside = pixels[y0 + 4, (x0 + x1) // 2].sum()
    assert abs(pixels[y0, x1 - 1].sum() - inside) > abs(pixels[y0 + 4, x1 - 20].sum() - inside)


def test_every_control_differs_from_family_to_family(bench: Callable[..., Bench]) -> None:
    """Shapes are compared, not colours. Radio buttons and fields are alike in some real ones, too."""
    roles = ("button", "checkbox", "combobox", "slider", "tab")
    seen: dict[str, set[bytes]] = {role: set() for role in roles}
    for family in FAMILIES:
        desk = bench(widgets=family, theme="slate")
        pixels = desk.desktop.perform(Wait(0)).pixels
        for role in roles:
            x0, y0, x1, y1 = next(
                e.box for e in desk.desktop.elements() if e.role == role and e.path and e.path[0] == "Gallery"
            )
            edges = np.abs(np.diff(pixels[y0:y1, x0:x1].astype(int).sum(2), axis=1)) > 40
            seen[role].add(edges.tobytes() + bytes((y1 - y0, (x1 - x0) % 256)))
    assert {role: len(kinds) for role, kinds in seen.items()} == dict.fromkeys(roles, len(FAMILIES))


def test_the_menus_at_the_top_are_those_of_the_window_in_front(bench: Callable[..., Bench]) -> None:
    desk = bench(widgets="aqua")
    desk.want(menu("file", "save"))
    assert desk.last == Command("save")
    assert desk.box("menu.file")[1] < 5
    desk.do(OpenApp("settings"))
    assert not [e for e in desk.desktop.elements() if e.role == "menuitem"]  # it has none
    desk.want(menu("file", "save"))  # brings the gallery to the front first
    assert desk.last == Command("save")


def test_a_pinned_app_is_opened_by_its_icon_and_then_stands_for_its_window(
    bench: Callable[..., Bench],
) -> None:
    desk = bench(widgets="fluent")
    desk.click("app:calculator")
    window = desk.desktop.world.windows[-1]
    assert window.app == "calculator"
    desk.click(f"task:{window.number}")
    assert desk.desktop.world.windows[0].is_minimized


def test_a_fourth_family_is_one_table(bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    dark = FAMILIES["aqua"].dark
    monkeypatch.setitem(FAMILIES, "night", Family("night", light=dark, dark=dark))
    monkeypatch.setitem(CHOICES, "widgets", (*CHOICES["widgets"], "night"))  # type: ignore[index]
    desk = bench(widgets="night")
    assert desk.desktop.perform(Wait(0)).pixels.mean() < bench().desktop.perform(Wait(0)).pixels.mean() - 40


def test_an_unknown_family_is_refused() -> None:
    known_names: Any = ", ".join(FAMILIES)
    with pytest.raises(Exception, match=known_names):
        EmuEnv(widgets="motif")
