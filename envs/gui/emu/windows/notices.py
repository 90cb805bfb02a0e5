"""What apps have to say: notices, each shown for a while in a toast, and in a list until it is dismissed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from vlrl.envs.gui.emu.state import World

STORE = "notices"
"""Where the desktop keeps them, among what apps keep."""
TOAST_MS = 6000
"""How long a toast stays."""


@dataclass(frozen=True)
class Notice:
    """A message of an app.

    Attributes:
        number: unlike any other's.
        app: whose it is, by its name in code.
        title: its first line, in bold letters.
        text: its second line, which is cut where there is no room.
        time_ms: when it comes, by the virtual clock; before that it is not there.
        opens: what its app is opened with by a click on it.
    """

    number: int
    app: str
    title: str
    text: str
    time_ms: int
    opens: str = ""


def kept(world: World) -> tuple[Notice, ...]:
    """All that have not been dismissed, also those that are still to come."""
    found: tuple[Notice, ...] = world.store.get(STORE) or ()
    return found


def here(world: World) -> tuple[Notice, ...]:
    """Those that have come, the newest first."""
    if STORE not in world.store:
        return ()
    come = (notice for notice in kept(world) if notice.time_ms <= world.time_ms)
    return tuple(sorted(come, key=lambda notice: (-notice.time_ms, notice.number)))


def toast(world: World) -> Notice | None:
    """The one that is shown on the screen: the newest, for a while, unless nothing may disturb."""
    newest = here(world)[:1]
    is_due = bool(newest) and world.time_ms - newest[0].time_ms < TOAST_MS
    return newest[0] if is_due and world.settings.get("notifications") else None


def without(world: World, numbers: Collection[int]) -> World:
    """The world in which some have been dismissed."""
    left = tuple(notice for notice in kept(world) if notice.number not in numbers)
    return world._replace(store={**world.store, STORE: left})
