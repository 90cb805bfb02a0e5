"""How an oracle selects several rows of a list: with ctrl held, by a rubber band, by touch."""

from __future__ import annotations

from vlrl.envs.gui.actions import Action, Click, Drag, KeyDown, KeyUp, LongPress
from vlrl.envs.gui.emu.oracle.intents import A_DRAG, A_LONG_PRESS, Intent, Needing, click
from vlrl.envs.gui.emu.oracle.reach import Locator, Stuck, is_selected, reach
from vlrl.envs.gui.emu.widgets.rows import RowOf


def pick(*ids: str) -> Intent:
    """Select rows one by one: on a desktop while ctrl is held, on a phone by a finger held and then taps."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        left = [id for id in ids if not is_selected(locator, id)]
        if not left:
            return KeyUp("ctrl"), True
        begins = len(left) == len(ids)
        if not locator.is_mobile and "ctrl" not in locator.world.keys and not begins:
            return KeyDown("ctrl"), False
        found = reach(locator, left[0])
        if not isinstance(found, tuple):
            return found, False
        is_last = locator.is_mobile and len(left) == 1
        return (LongPress(found) if locator.is_mobile and begins else Click(found)), is_last

    return Needing(intent, KeyDown("ctrl"), A_LONG_PRESS)


def leave_out(id: str) -> Intent:
    """Select a row no longer, and leave the others selected."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        if not is_selected(locator, id):
            return KeyUp("ctrl"), True
        if not locator.is_mobile and "ctrl" not in locator.world.keys:
            return KeyDown("ctrl"), False
        return click(id)(locator)[0], locator.is_mobile

    return Needing(intent, KeyDown("ctrl"), A_LONG_PRESS)


def pick_between(*ids: str) -> Intent:
    """Select rows that follow one another: on a desktop by a rubber band, on a phone one by one."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        if locator.is_mobile:
            return pick(*ids)(locator)
        start, end = reach(locator, ids[0]), reach(locator, ids[-1])
        if not isinstance(start, tuple):
            return start, False
        if not isinstance(end, tuple):
            return end, False
        return Drag(((_ground(locator, ids[0]), start[1]), end)), True

    return Needing(intent, A_DRAG, A_LONG_PRESS)


def _ground(locator: Locator, id: str) -> int:
    """A pixel from the left of the screen at which a row is empty ground."""
    found = locator.find(id)
    row = found[1].widget if found else None
    if found is None or not isinstance(row, RowOf):
        raise Stuck(f"there is no row {id!r} on the screen")
    return found[0].box[0] + (row.ground + row.edges[-1]) // 2
