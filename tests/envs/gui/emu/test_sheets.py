"""Lists and context menus of a phone as sheets from below: `choices: sheet`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gallery import Bench
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, LongPress, SystemButton
from vlrl.envs.gui.emu.drawing.family import FAMILIES
from vlrl.envs.gui.emu.input.events import Change
from vlrl.envs.gui.emu.variation import LEAST, Variation
from vlrl.envs.gui.emu.windows import wm

MakeBench = Callable[..., Bench]
SHEET = {"form": "mobile", "choices": "sheet"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_list_comes_from_below_and_is_chosen_from(bench: MakeBench, family: str) -> None:
    desk = bench(widgets=family, **SHEET).click("pet")
    x0, y0, x1, y1 = desk.box("popup.0")
    area = wm.work_area(desk.desktop.world)
    assert (x0, x1, y1) == (0, 384, area[3]) and y0 > area[3] // 2
    assert desk.is_painted()
    desk.click("1")
    assert desk.last == Change("pet", "dog") and desk.desktop.world.popup is None


def test_a_tap_beside_it_and_back_put_it_away(bench: MakeBench) -> None:
    desk = bench(**SHEET)
    count = len(desk.state.events)
    for away in (Click((190, 60)), SystemButton("back")):
        assert desk.click("pet").desktop.world.popup is not None
        assert desk.do(away).desktop.world.popup is None
    assert len(desk.state.events) == count


def test_a_context_menu_is_one_too_and_the_app_s_menu_is_none(bench: MakeBench) -> None:
    desk = bench(**SHEET)
    desk.do(LongPress(desk.where("city")))
    assert desk.box("popup.0")[3] == wm.work_area(desk.desktop.world)[3]
    desk.do(SystemButton("back")).click("menu")
    assert desk.box("popup.0")[0] == 0 < desk.box("popup.0")[2] < 384


@pytest.mark.parametrize("options", [{"form": "mobile"}, {"choices": "sheet"}])
def test_without_the_option_and_on_a_desktop_there_is_none(bench: MakeBench, options: dict[str, str]) -> None:
    assert Variation({}).draw(1)["choices"] == "menu"
    desk = bench(**options).click("pet")
    assert desk.box("popup.0")[3] < wm.work_area(desk.desktop.world)[3]


def test_tasks_are_done_with_sheets() -> None:
    large = {"scale": 125, "font_size": 14, "font": "roman", "size": LEAST["mobile"][125]}
    names = ["clock/add_alarm", "editor/replace_text", "forms/sign_up"]
    assert failures("mobile", names, 2, choices="sheet", keyboard="screen", **large) == []
