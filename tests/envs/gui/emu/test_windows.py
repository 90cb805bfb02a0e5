"""The window manager, the task bar and the dialogs, by clicks and keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from gallery import Bench

from vlrl.envs.gui.actions import Click, Drag, Key, LongPress, Move, OpenApp, Swipe, SystemButton, TypeText
from vlrl.envs.gui.emu.oracle.intents import click, menu, open_app, type_into, write
from vlrl.envs.gui.emu.state import Window
from vlrl.envs.gui.emu.windows import wm

MakeBench = Callable[..., Bench]


def front(desk: Bench) -> Window:
    found = wm.front(desk.desktop.world)
    assert found is not None
    return found


def names(desk: Bench) -> list[str]:
    return [window.app for window in desk.desktop.world.windows]


def test_a_window_is_moved_by_its_title_and_stays_within_reach(bench: MakeBench) -> None:
    desk = bench(size=(800, 600))
    x0, y0, x1, y1 = front(desk).box
    x, y = desk.where("window.title")
    desk.do(Drag(((x, y), (x + 30, y + 20))))
    assert front(desk).box == (x0 + 30, y0 + 20, x1 + 30, y1 + 20)
    desk.do(Drag((desk.where("window.title"), (5, 5)))).do(Drag((desk.where("window.title"), (799, 599))))
    box = front(desk).box
    assert (
        box[0] < 800 - 40
        and 0 <= box[1] < 600 - 20
        and (box[2] - box[0], box[3] - box[1]) == (x1 - x0, y1 - y0)
    )


def test_a_window_is_resized_at_its_edges_and_corners(bench: MakeBench) -> None:
    desk = bench(size=(800, 640))
    x0, y0, x1, y1 = front(desk).box
    desk.do(Drag(((x1 - 1, y1 - 1), (x1 + 49, y1 + 29))))
    assert front(desk).box == (x0, y0, x1 + 50, y1 + 30)
    desk.do(Drag(((x0, y0 + 100), (x0 - 20, y0 + 100))))
    assert front(desk).box == (x0 - 20, y0, x1 + 50, y1 + 30)
    desk.do(Drag(((x0 - 20, y0 + 100), (790, y0 + 100))))
    assert front(desk).box[2] - front(desk).box[0] == wm.LEAST_SIZE[0]


def test_maximize_restore_minimize_and_close(bench: MakeBench) -> None:
    desk = bench()
    box = front(desk).box
    desk.click("window.maximize")
    assert wm.box_of(desk.desktop.world, front(desk)) == wm.work_area(desk.desktop.world)
    desk.click("window.title", count=2)
    assert not front(desk).is_maximized and front(desk).box == box
    desk.click("window.minimize")
    assert wm.front(desk.desktop.world) is None and names(desk) == ["gallery"]
    desk.click("task:1")
    assert front(desk).app == "gallery"
    desk.click("task:1")
    assert wm.front(desk.desktop.world) is None
    desk.click("task:1").click("window.close")
    assert names(desk) == []


def test_the_window_that_is_clicked_comes_to_the_front(bench: MakeBench) -> None:
    desk = bench().want(open_app("settings"))
    assert names(desk) == ["gallery", "settings"]
    settings, gallery = front(desk).box, desk.desktop.world.windows[0].box
    assert gallery[0] < settings[0] or gallery[1] < settings[1]
    events = desk.state.events
    desk.do(Click((gallery[0] + 6, gallery[3] - 6)))
    assert names(desk) == ["settings", "gallery"] and desk.state.events == events
    desk.do(Key(("alt", "tab")))
    assert front(desk).app == "settings"
    desk.do(Key(("alt", "f4")))
    assert names(desk) == ["gallery"]
    desk.do(Key(("super", "d")))
    assert wm.front(desk.desktop.world) is None


def test_apps_start_from_the_menu_the_keyboard_an_icon_and_by_name(bench: MakeBench) -> None:
    desk = bench().do(Key(("super",)))
    names_shown = [e.name for e in desk.desktop.elements() if e.role == "menuitem"]
    assert "Text Editor" in names_shown and "Settings" in names_shown
    desk.do(Key(("escape",))).do(OpenApp("Settings"), OpenApp("no such app"))
    assert front(desk).app == "settings"
    desk.do(OpenApp("settings"))
    assert names(desk).count("settings") == 1
    desk.do(Key(("super", "d")))
    desk.click("file:/Desktop/c.txt", count=2)
    assert front(desk).app == "editor" and front(desk).state.text == "gamma"


def test_a_dialog_blocks_its_window_and_answers(bench: MakeBench) -> None:
    desk = bench().do(OpenApp("editor"), TypeText("new words"))
    editor = front(desk)
    desk.want(click("window.close"))
    assert front(desk).app == "dialog.message" and desk.element("dialog", "Question")
    desk.do(Click((editor.box[0] + 20, editor.box[3] - 40)), TypeText("lost"))
    assert desk.desktop.world.window(editor.number).state.text == "new words"
    desk.click("cancel")
    assert front(desk).app == "editor"
    desk.want(click("window.close")).do(Key(("escape",)))
    assert front(desk).app == "editor"
    desk.want(click("window.close"), click("no"))
    assert names(desk) == ["gallery"]


def test_a_file_is_saved_and_opened_through_the_chooser(bench: MakeBench) -> None:
    desk = bench().do(OpenApp("editor"), TypeText("milk\neggs"))
    desk.want(menu("file", "save"), type_into("name", "list.txt"), click("accept"))
    assert desk.desktop.world.read("/Documents/list.txt") == "milk\neggs"
    assert front(desk).state.saved == "milk\neggs" and "list.txt" in [e.name for e in desk.desktop.elements()]
    desk.want(menu("file", "open"), click("chosen./Documents/a.txt", count=2))
    assert front(desk).state.text == "alpha"
    desk.want(
        menu("file", "open"), click("up"), click("chosen./Documents", count=2), type_into("name", "b.txt")
    )
    desk.do(Key(("enter",)))
    assert front(desk).state.path == "/Documents/b.txt"
    desk.want(menu("file", "save_as"), type_into("name", "a.txt"), click("accept"))
    assert front(desk).app == "dialog.message"
    desk.want(click("no"), click("cancel"))
    assert desk.desktop.world.read("/Documents/a.txt") == "alpha"


def test_changes_given_up_for_another_file_stay_until_there_is_one(bench: MakeBench) -> None:
    desk = bench().do(OpenApp("editor"), TypeText("not saved"))
    desk.want(menu("file", "open"), click("no"), click("cancel"))
    assert front(desk).app == "editor" and front(desk).state.text == "not saved"
    desk.want(menu("file", "open"), click("no"), click("chosen./Documents/a.txt", count=2))
    assert front(desk).state.text == "alpha"
    desk.do(TypeText("more")).want(menu("file", "new"), click("no"))
    assert front(desk).state.text == "" and not front(desk).state.is_changed


def test_a_setting_shows_at_once(bench: MakeBench) -> None:
    desk = bench().do(OpenApp("settings"))
    before = desk.desktop.perform(Move((3, 3))).pixels
    desk.click("theme").do(Key(("down",)), Key(("enter",)))
    desk.click("theme").do(Key(("end",)), Key(("escape",)))
    assert desk.desktop.world.settings["theme"] == "daylight"
    desk.click("theme").click("1")
    assert desk.desktop.world.settings["theme"] == "midnight"
    after = desk.desktop.perform(Move((3, 3))).pixels
    assert after.shape == before.shape and np.abs(after.astype(int) - before).mean() > 20
    desk.click("language").click("1")
    assert desk.element("window", "Einstellungen")


def test_a_phone_has_one_app_at_a_time(bench: MakeBench) -> None:
    desk = bench(form="mobile")
    assert wm.box_of(desk.desktop.world, front(desk)) == wm.work_area(desk.desktop.world)
    desk.click("system.home")
    assert wm.front(desk.desktop.world) is None
    desk.want(open_app("editor"), write("on the way"))
    assert front(desk).app == "editor" and front(desk).state.text == "on the way"
    desk.click("system.back")
    assert wm.front(desk.desktop.world) is None and len(names(desk)) == 2
    desk.want(open_app("editor"))
    assert front(desk).state.text == "on the way"


def test_a_finger_swipes_holds_and_taps(bench: MakeBench) -> None:
    desk = bench("second", form="mobile")
    x, y = desk.where("chosen")
    desk.do(Swipe((x, y + 100), (x, y - 100)))
    assert "hidden" not in desk.element("option", "Row 20").states
    desk.click("chosen.20")
    assert desk.state.chosen == 20 and type(desk.last).__name__ == "Activate"
    desk.do(LongPress(desk.where("chosen.21")))
    assert [e.name for e in desk.desktop.elements() if e.role == "menuitem"][-2:] == ["Remove", "Rename"]
    desk.do(SystemButton("back"))
    assert desk.desktop.world.popup is None
    desk.do(SystemButton("home"))
    assert wm.front(desk.desktop.world) is None


def test_what_is_shown_is_what_a_fresh_screen_would_show(bench: MakeBench) -> None:
    """Windows raised over each other, moved, closed; files, settings and kept data changed under an app."""
    desk = bench(size=(800, 608)).do(OpenApp("settings"), OpenApp("editor"), TypeText("words"))
    for _ in range(3):
        desk.do(Key(("alt", "tab")))
        assert desk.is_painted()
    desk.do(OpenApp("gallery"))
    for action in (Key(("f9",)), Key(("f9",)), Drag((desk.where("window.title"), (500, 300)))):
        desk.do(action)
        assert desk.is_painted()
    desk.do(OpenApp("editor")).want(menu("file", "save"), type_into("name", "new.txt"), click("accept"))
    assert desk.is_painted()
    desk.do(OpenApp("settings")).click("theme").click("2")
    assert desk.is_painted()
    desk.do(Key(("alt", "f4")))
    assert desk.is_painted()
