"""How an oracle gets at notices and quick settings: by the clock, on a phone from the top edge."""

from __future__ import annotations

from vlrl.envs.gui.actions import Action, Click, Swipe
from vlrl.envs.gui.emu.oracle.intents import A_DRAG, Intent, Needing, click
from vlrl.envs.gui.emu.oracle.reach import Locator, reach

A_CLICK = Click((40, 40))


def open_shade() -> Intent:
    """Show the notices and the quick settings."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        if not locator.is_mobile:
            return click("clock")(locator)
        width, height = locator.world.size
        return Swipe((width // 2, 4), (width // 2, height // 2)), True

    return Needing(intent, A_CLICK, A_DRAG)


def turn(key: str) -> Intent:
    """Turn a quick setting on or off."""
    return click(f"tile:{key}")


def dismiss(number: int) -> Intent:
    """Dismiss a notice by its button, on a phone by a finger that goes across it."""

    def intent(locator: Locator) -> tuple[Action, bool]:
        if not locator.is_mobile:
            return click(f"dismiss:{number}")(locator)
        found = reach(locator, f"notice:{number}")
        if not isinstance(found, tuple):
            return found, False
        return Swipe((locator.world.size[0] // 4, found[1]), (3 * locator.world.size[0] // 4, found[1])), True

    return Needing(intent, A_CLICK, A_DRAG)
