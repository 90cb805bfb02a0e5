"""Toasts, the list of notices and the quick settings, on a desktop and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gallery import Bench
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, Drag, Key, Scroll, Swipe, SystemButton, TypeText, Wait
from vlrl.envs.gui.emu.apps.parts.mail_view import Mail
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.drawing.family import FAMILIES
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.records import changed_records
from vlrl.envs.gui.emu.variation import Variation
from vlrl.envs.gui.emu.windows import notices, wm
from vlrl.envs.gui.emu.windows.notices import TOAST_MS, Notice
from vlrl.envs.gui.screen import Form

MakeBench = Callable[..., Bench]


def with_notices(desk: Bench, *come: Notice) -> Bench:
    """Notices whose times are counted from now."""
    now = desk.desktop.snapshot()
    later = tuple(
        Notice(one.number, one.app, one.title, one.text, one.time_ms + now.world.time_ms, one.opens)
        for one in come
    )
    store = {**now.world.store, notices.STORE: later}
    desk.desktop.restore(now._replace(world=now.world._replace(store=store)))
    return desk


def several(count: int, time_ms: int = -60_000) -> list[Notice]:
    return [Notice(n, "clock", f"Timer {n}", "It is over.", time_ms - n) for n in range(1, count + 1)]


def names(desk: Bench) -> list[str]:
    """Titles of the cards that can be seen."""
    return [e.name for e in desk.desktop.elements() if e.role == "listitem" and e.name.startswith("Timer")]


def left(desk: Bench) -> list[int]:
    return [notice.number for notice in notices.kept(desk.desktop.world)]


def test_a_toast_comes_when_it_is_due_stays_a_while_and_remains_in_the_list(bench: MakeBench) -> None:
    desk = with_notices(bench(), Notice(1, "clock", "Timer 1", "It is over.", 2500))
    seen = [bool(names(desk.do(Wait(1000)))) for _ in range(10)]
    assert seen == [False, False] + [True] * (TOAST_MS // 1000) + [False] * 2
    assert names(desk.click("clock")) == ["Timer 1"] and desk.element("timer", desk_time(desk)).value


def desk_time(desk: Bench) -> str:
    return next(e.name for e in desk.desktop.elements() if e.role == "timer")


def test_nothing_disturbs_where_it_must_not(bench: MakeBench) -> None:
    desk = bench().click("clock").click("tile:notifications").do(Key(("escape",)))
    assert not desk.desktop.world.settings["notifications"]
    desk = with_notices(desk, *several(1, 0))
    assert names(desk.do(Wait(0))) == []
    assert names(desk.do(Key(("super", "n")))) == ["Timer 1"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_what_is_seen_is_what_a_fresh_screen_shows(bench: MakeBench, family: str, form: Form) -> None:
    desk = with_notices(bench(widgets=family, form=form), *several(3, 500))
    assert desk.do(Wait(1000)).is_painted()  # the toast
    opened = Swipe((190, 5), (190, 300)) if form == "mobile" else Click(desk.where("clock"))
    assert desk.do(opened).is_painted()
    assert desk.click("tile:bluetooth").is_painted()
    assert desk.do(Key(("escape",)) if form == "desktop" else SystemButton("back")).is_painted()


def test_a_toast_lies_in_the_corner_of_its_family(bench: MakeBench) -> None:
    corners = {}
    for family in FAMILIES:
        desk = with_notices(bench(widgets=family), *several(1, 0)).do(Wait(0))
        x0, y0, x1, y1 = desk.box("notice:1")
        area = wm.work_area(desk.desktop.world)
        assert area[0] <= x0 < x1 <= area[2] and area[1] <= y0 < y1 <= area[3]
        corners[family] = (
            "left" if x0 < 640 - x1 - 40 else "right" if x0 > 640 - x1 + 40 else "middle",
            y0 < 240,
        )
    assert corners == {
        "classic": ("right", False),
        "fluent": ("right", False),
        "aqua": ("right", True),
        "adwaita": ("middle", True),
    }


def test_notices_are_dismissed_one_by_one_and_all_and_that_is_no_side_effect(bench: MakeBench) -> None:
    desk = with_notices(bench(), *several(3), Notice(9, "mail", "Later", "", 60_000)).click("clock")
    before = desk.desktop.world
    assert left(desk.click("dismiss:2")) == [1, 3, 9]
    assert left(desk.click("clear")) == [9]  # which has not come
    assert desk.element("text", "No notifications")
    assert changed_records(before, desk.desktop.world) == []


def test_a_click_on_a_notice_opens_what_it_is_about(bench: MakeBench) -> None:
    desk = bench()
    for _ in range(2):  # the app is started, then it is there already
        desk = with_notices(desk, Notice(1, "mail", "The harbour", "Welcome", -60_000, "1"))
        desk.click("clock").click("notice:1")
        mail = desk.desktop.world.app("mail")
        assert isinstance(mail, Mail) and mail.letter == 1 and left(desk) == []
        assert not desk.desktop.world.is_shade_open
        desk.click("folder.archive")
        assert desk.desktop.world.app("mail").letter is None


def test_the_shade_is_shut_by_a_click_beside_it_by_escape_and_by_the_clock(bench: MakeBench) -> None:
    desk = bench()
    pressed = len(desk.state.events)
    for shut in (Click(desk.where("press")), Key(("escape",)), Click(desk.where("clock"))):
        assert desk.click("clock").desktop.world.is_shade_open
        desk.do(shut)
        assert not desk.desktop.world.is_shade_open and len(desk.state.events) == pressed


def test_a_list_without_room_is_scrolled(bench: MakeBench) -> None:
    desk = with_notices(bench(), *several(12)).click("clock")
    seen = names(desk)
    assert 2 <= len(seen) < 12 and seen[0] == "Timer 1"
    place = desk.where("notice:1")
    assert names(desk.do(Scroll(0, 45, place)))[0] == "Timer 2"
    desk.do(*[Scroll(0, 500, place)] * 9)
    assert names(desk) == [f"Timer {n}" for n in range(13 - len(seen), 13)]
    assert desk.is_painted()
    desk.click("dismiss:12")
    assert names(desk)[-1] == "Timer 11" and len(names(desk)) == len(seen)


def test_quick_settings_are_those_of_the_settings(bench: MakeBench) -> None:
    desk = bench().click("clock").click("tile:bluetooth").click("tile:airplane")
    settings = desk.desktop.world.settings
    assert settings["airplane"] and not settings["wifi"] and not settings["bluetooth"]
    assert "checked" in desk.element("switch", "Airplane mode").states
    x0, y0, x1, y1 = desk.box("brightness")
    middle = (y0 + y1) // 2
    desk.do(Drag(((x0 + 40, middle), (x1 - 2, middle))))
    assert desk.desktop.world.settings["brightness"] == 100


def test_a_phone_s_shade_is_pulled_from_the_top_edge_and_swept(bench: MakeBench) -> None:
    desk = with_notices(bench(form="mobile"), *several(3))
    desk.do(Swipe((190, 200), (190, 400)), Swipe((190, 4), (190, 14)), Click((20, 6)))
    assert not desk.desktop.world.is_shade_open  # from elsewhere, too short, a tap
    desk.do(Swipe((190, 4), (190, 200)))
    assert names(desk) == ["Timer 1", "Timer 2", "Timer 3"]
    x, y = desk.where("notice:2")
    assert left(desk.do(Swipe((x - 60, y), (x + 90, y)))) == [1, 3]
    x0, y0, x1, y1 = desk.box("brightness")
    desk.do(Swipe((x1 - 30, (y0 + y1) // 2), (x0 + 2, (y0 + y1) // 2)))
    assert desk.desktop.world.settings["brightness"] == 0 and desk.desktop.world.is_shade_open
    desk.do(Swipe((190, 600), (190, 300)))
    assert not desk.desktop.world.is_shade_open
    desk.do(Swipe((190, 4), (190, 200)), SystemButton("home"))
    assert not desk.desktop.world.is_shade_open and wm.front(desk.desktop.world) is None


def test_a_toast_on_a_phone_is_swept_away_or_opened(bench: MakeBench) -> None:
    desk = with_notices(bench(form="mobile"), *several(2, 0)).do(Wait(0))
    x, y = desk.where("notice:1")
    assert left(desk.do(Swipe((x, y), (x + 100, y)))) == [2]
    desk = with_notices(bench(form="mobile"), *several(1, 0)).do(Wait(0))
    desk.click("notice:1")
    front = wm.front(desk.desktop.world)
    assert front is not None and front.app == "clock"


def first_screens(**options: Any) -> list[np.ndarray]:
    desktop = EmuEnv(tasks="files/*", **options).backend
    assert isinstance(desktop, Desktop)
    shown = []
    for seed in range(3):
        desktop.reset({}, seed)
        shown += [desktop.perform(Wait(2000)).pixels for _ in range(12)]
    return shown


def test_toasts_distract_only_where_that_is_asked_for() -> None:
    def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    assert Variation({}).draw(3)["toasts"] == "none"
    some = first_screens(toasts="some")
    assert same(first_screens(), first_screens(toasts="none")) and same(some, first_screens(toasts="some"))
    assert not any(same(first_screens()[n : n + 12], some[n : n + 12]) for n in (0, 12, 24))
    assert {Variation({"toasts": ["none", "some"]}).draw(seed)["toasts"] for seed in range(9)} == {
        "none",
        "some",
    }


@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_tasks_are_done_in_spite_of_toasts(form: Form) -> None:
    """Toasts lie over buttons, and menus over toasts."""
    large = {"scale": 125, "font_size": 14, "font": "roman", "language": "fr", "widgets": "fluent"}
    assert failures(form, ["paint/fill", "files/rename", "settings/switch"], 5, toasts="some") == []
    assert failures(form, ["mail/star", "files/copy"], 7, toasts="some", **large) == []


def test_the_wrong_notice_dismissed_ends_the_task() -> None:
    desktop = EmuEnv(tasks="notices/dismiss", difficulty=2).backend
    assert isinstance(desktop, Desktop)
    desktop.reset({}, 0)
    desktop.perform(desktop.oracle())
    start = desktop.snapshot()
    desktop.restore(start._replace(world=notices.without(start.world, {13})))
    assert desktop.verdict().ended and not desktop.verdict().success
    desktop.restore(start._replace(world=notices.without(start.world, {11, 12, 13})))
    assert not desktop.verdict().success
    desktop.restore(start)
    desktop.perform(TypeText("x"))
    assert desktop.verdict().progress == 0
