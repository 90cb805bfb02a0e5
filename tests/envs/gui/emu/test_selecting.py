"""Several rows at once: with modifiers, by a rubber band, on a phone by a finger held and taps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gallery import Bench
from oracle_plays import failures

from vlrl.envs.gui.actions import (
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Key,
    LongPress,
    Move,
    Scroll,
    SystemButton,
)
from vlrl.envs.gui.emu.apps.folders import Folders
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.drawing.family import FAMILIES
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.input.events import Activate
from vlrl.envs.gui.emu.oracle.reach import Locator
from vlrl.envs.gui.emu.windows import wm
from vlrl.envs.gui.screen import Form

MakeBench = Callable[..., Bench]


def ground(desk: Bench, row: int) -> tuple[int, int]:
    """Empty ground beside the first cell of a row."""
    _, y0, x1, y1 = desk.box(f"many.{row}")
    return x1 - 12, (y0 + y1) // 2


def test_shift_extends_from_the_row_that_was_clicked_last_up_and_down(bench: MakeBench) -> None:
    desk = bench("second").click("many.5").click("many.7", modifiers=("shift",))
    assert desk.state.many == (5, 6, 7)
    assert desk.click("many.3", modifiers=("shift",)).state.many == (5, 4, 3)
    assert desk.click("many.6", modifiers=("shift",)).state.many == (5, 6)
    desk.click("many.1", modifiers=("ctrl",)).click("many.2", modifiers=("ctrl", "shift"))
    assert desk.state.many == (1, 2, 5, 6)


def test_a_band_selects_what_it_touches_and_ctrl_turns_it(bench: MakeBench) -> None:
    desk = bench("second")
    desk.do(Drag((ground(desk, 2), desk.where("many.5"))))
    assert desk.state.many == (2, 3, 4, 5)
    desk.do(Drag((ground(desk, 7), ground(desk, 6)), modifiers=("ctrl",)))
    assert desk.state.many == (2, 3, 4, 5, 6, 7)
    desk.do(Drag((ground(desk, 8), ground(desk, 7)), modifiers=("ctrl",)))
    assert desk.state.many == (2, 3, 4, 5, 6, 8)
    desk.do(Drag((ground(desk, 0), ground(desk, 1)), modifiers=("shift",)))
    assert set(desk.state.many) == {0, 1, 2, 3, 4, 5, 6, 8}
    assert desk.do(Drag((ground(desk, 9), ground(desk, 8)))).state.many == (8, 9)


def test_a_band_keeps_its_beginning_where_the_list_is_scrolled(bench: MakeBench) -> None:
    desk = bench("second")
    start = ground(desk, 3)
    desk.do(ButtonDown("left", start), Move((start[0], start[1] + 4)))
    desk.do(Scroll(0, 60, start), Move(start), ButtonUp("left"))
    assert desk.state.many == (3, 4, 5, 6)


def test_a_click_on_ground_is_one_on_its_row_and_below_all_rows_on_none(bench: MakeBench) -> None:
    desk = bench("second")
    desk.do(Click(ground(desk, 4), count=2))
    assert desk.state.many == (4,) and desk.last == Activate("many", 4)
    folder = files_with(("a", "b"))
    folder.perform(Key(("ctrl", "a")))
    assert len(chosen(folder)) == 3
    x0, y0, x1, y1 = next(e.box for e in folder.elements() if e.role == "list" and e.name == "Files")
    folder.perform(Click(((x0 + x1) // 2, y1 - 8), modifiers=("ctrl",)))
    assert len(chosen(folder)) == 3
    folder.perform(Click(((x0 + x1) // 2, y1 - 8)))
    assert chosen(folder) == ()
    folder.perform(Drag((((x0 + x1) // 2, y1 - 8), (x0 + 30, y0 + 2))))
    assert len(chosen(folder)) == 3  # a band from below them


@pytest.mark.parametrize("family", FAMILIES)
def test_the_band_is_seen_while_it_is_drawn(bench: MakeBench, family: str) -> None:
    desk = bench("second", widgets=family)
    start, end = ground(desk, 1), desk.where("many.4")
    desk.do(ButtonDown("left", start), Move(end))
    drawn = desk.desktop.perform(Move((end[0] - 1, end[1]))).pixels
    assert desk.is_painted()
    desk.do(ButtonUp("left"))
    assert desk.is_painted()
    left = desk.desktop.perform(Move((end[0] - 1, end[1]))).pixels
    changed = np.argwhere((drawn != left).any(2))
    box = (*changed.min(0)[::-1].tolist(), *changed.max(0)[::-1].tolist())
    assert box == (end[0] - 1, start[1], start[0], end[1])


def files_with(names: tuple[str, ...], form: Form = "desktop") -> Desktop:
    """Files open on a folder."""
    desktop = EmuEnv(tasks="files/new_folder", form=form, language="en", difficulty=1, windows="one").backend
    assert isinstance(desktop, Desktop)
    desktop.reset({}, 0)
    now = desktop.snapshot()
    disk = {path: file for path, file in now.world.files.items() if not path.startswith("/Documents/")}
    some = now.world.files["/Documents"]._replace(content="text")
    disk |= {f"/Documents/{name}": some for name in names}
    disk |= {"/Documents/Box": now.world.files["/Documents"]}
    desktop.restore(now._replace(world=now.world._replace(files=disk)))
    return desktop


def chosen(desktop: Desktop) -> tuple[str, ...]:
    state = desktop.world.app("files")
    assert isinstance(state, Folders)
    return tuple(path.rpartition("/")[2] for path in state.chosen)


def at(desktop: Desktop, id: str) -> tuple[int, int]:
    found = Locator(desktop._scene, desktop.world).find(id)
    assert found is not None, id
    layer, placed = found
    x0, y0, x1, y1 = placed.box
    return layer.box[0] + (x0 + x1) // 2, layer.box[1] + (y0 + y1) // 2


def test_all_that_is_selected_is_dragged_deleted_and_restored() -> None:
    desktop = files_with(("a", "b", "c"))
    for name in ("a", "c"):
        desktop.perform(Click(at(desktop, f"chosen./Documents/{name}"), modifiers=("ctrl",)))
    desktop.perform(Drag((at(desktop, "chosen./Documents/c"), at(desktop, "chosen./Documents/Box"))))
    assert {"/Documents/Box/a", "/Documents/Box/c", "/Documents/b"} <= set(desktop.world.files)
    desktop.perform(Click(at(desktop, "chosen./Documents/Box"), count=2))
    desktop.perform(Key(("ctrl", "a")))
    desktop.perform(Key(("delete",)))
    assert {"/Trash/a", "/Trash/c"} <= set(desktop.world.files)


def test_the_middle_of_a_row_is_dragged_also_in_a_narrow_list() -> None:
    large = {"scale": 125, "font_size": 14, "font": "roman", "language": "fr", "bar_side": "left"}
    assert failures("desktop", ["files/drag"], 7, widgets="classic", **large) == []


def test_a_context_menu_of_several_has_nothing_that_is_for_one() -> None:
    desktop = files_with(("a", "b"))
    desktop.perform(Key(("ctrl", "a")))
    place = at(desktop, "chosen./Documents/a")
    desktop.perform(Click(place, "right"))
    names = {e.name for e in desktop.elements() if e.role == "menuitem" and "disabled" in e.states}
    assert {"Open", "Rename…", "Details"} <= names and "Delete" not in names
    desktop.perform(Key(("escape",)))
    desktop.perform(Click(at(desktop, "chosen./Documents/Box")))
    desktop.perform(Click(place, "right"))  # of another row: that is then the only one
    assert chosen(desktop) == ("a",)
    assert not [e for e in desktop.elements() if e.name == "Rename…" and "disabled" in e.states]


def test_on_a_phone_a_finger_held_begins_a_selection_and_taps_go_on_with_it() -> None:
    desktop = files_with(("a", "b", "c"), "mobile")
    places = {name: at(desktop, f"chosen./Documents/{name}") for name in ("a", "b", "c", "Box")}
    desktop.perform(LongPress(places["a"]))
    assert chosen(desktop) == ("a",) and desktop.world.popup is None
    for name in ("c", "b", "a"):
        desktop.perform(Click(places[name]))
    assert set(chosen(desktop)) == {"b", "c"}
    desktop.perform(Click(at(desktop, "cut")))
    assert chosen(desktop) == ()
    desktop.perform(Click(places["Box"]))
    assert desktop.world.app("files").folder == "/Documents/Box"
    desktop.perform(LongPress(places["Box"]))
    assert chosen(desktop) == ()  # nothing is there


def test_a_phone_s_back_leaves_the_selection_and_then_the_app() -> None:
    desktop = files_with(("a", "b"), "mobile")
    desktop.perform(LongPress(at(desktop, "chosen./Documents/a")))
    desktop.perform(SystemButton("back"))
    assert chosen(desktop) == () and wm.front(desktop.world) is not None
    desktop.perform(SystemButton("back"))
    assert wm.front(desktop.world) is None
