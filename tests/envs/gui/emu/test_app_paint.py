"""Paint: strokes on an image that is a value."""

from __future__ import annotations

from vlrl.envs.gui.actions import Click, Drag, Key
from vlrl.envs.gui.emu.apps.paint import Paint
from vlrl.envs.gui.emu.apps.parts.canvas import (
    NUMBERS,
    blank,
    box,
    changed,
    coloured,
    disc,
    filled,
    rectangle,
    stroke,
)
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.screen import Element

RED = NUMBERS["red"]


def test_strokes() -> None:
    sheet = blank(20, 10)
    assert changed(sheet, stroke(sheet, ((2, 2), (5, 2)), RED, 1)) == [(x, 2, RED) for x in range(2, 6)]
    assert len(changed(sheet, stroke(sheet, ((3, 3),), RED, 3))) == 9
    assert stroke(sheet, ((-50, -50), (-40, 3)), RED, 3) == sheet  # beside the sheet
    framed = rectangle(sheet, (1, 1), (8, 8), RED, 1)
    assert len(changed(sheet, framed)) == 4 * 7
    assert len(changed(framed, filled(framed, (4, 4), 5))) == 6 * 6
    assert filled(sheet, (30, 4), 5) == sheet


def test_filling_goes_round_corners() -> None:
    sheet = box(box(blank(9, 9), (2, 0), (2, 7), 1), (5, 1), (5, 8), 1)  # a passage in the form of an S
    assert filled(sheet, (0, 0), 3).pixels.count(3) == 81 - 16
    assert filled(disc(blank(30, 30), (15, 15), 8, 1), (15, 15), 3).pixels.count(1) == 0
    assert coloured(30, 30, sheet).shape == (30, 30, 3)


def paint() -> Desktop:
    desktop = EmuEnv(tasks="paint/fill", difficulty=1, scale=100, language="en").backend
    assert isinstance(desktop, Desktop)
    desktop.reset({}, 1)
    return desktop


def state_of(desktop: Desktop) -> Paint:
    state = desktop.world.app("paint")
    assert isinstance(state, Paint)
    return state


def named(desktop: Desktop, role: str, name: str) -> Element:
    return next(e for e in desktop.elements() if e.role == role and e.name == name)


def middle(element: Element) -> tuple[int, int]:
    x0, y0, x1, y1 = element.box
    return (x0 + x1) // 2, (y0 + y1) // 2


def test_every_tool_paints_and_undo_takes_it_back() -> None:
    desktop = paint()
    first = state_of(desktop).image
    left, top, _, _ = named(desktop, "img", "Picture").box
    path = ((left + 5, top + 5), (left + 60, top + 8), (left + 60, top + 95))
    desktop.perform(Click(middle(named(desktop, "button", "red"))))
    counts = []
    for tool in ("Pen", "Line", "Rectangle", "Eraser"):
        desktop.perform(Click(middle(named(desktop, "button", tool))))
        desktop.perform(Drag(path))
        counts.append(len(changed(first, state_of(desktop).image)))
    assert counts[0] < counts[1] < counts[2] and counts[3] < counts[2]
    for _ in range(4):
        desktop.perform(Key(("ctrl", "z")))
    assert state_of(desktop).image == first and not state_of(desktop).before
    assert desktop.verdict().progress == 0


def test_a_new_image_leaves_the_tool_in_hand() -> None:
    desktop = paint()
    desktop.perform(Click(middle(named(desktop, "combobox", "Thickness"))))
    for action in (Key(("down",)), Key(("enter",)), Click(middle(named(desktop, "button", "red")))):
        desktop.perform(action)
    in_hand = [state_of(desktop).thickness, state_of(desktop).colour]
    assert in_hand == [1, "red"]
    desktop.perform(Key(("ctrl", "n")))
    assert [state_of(desktop).thickness, state_of(desktop).colour] == in_hand and not state_of(desktop).path
