"""One event after the other: what apps make of them, and what that does to the windows."""

from __future__ import annotations

import dataclasses
from typing import Any

from vlrl.envs.gui.emu import limits
from vlrl.envs.gui.emu.app import APPS, Reader, System
from vlrl.envs.gui.emu.input.events import Change, Closing, Command, Event, Open
from vlrl.envs.gui.emu.state import World, with_window
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.windows import wm

MAX_CHAIN = 32
"""Events that one event may lead to; an app that opens itself for ever is stopped here."""


def deliver(world: World, number: int, event: Event) -> World:
    """Send an event to a window's app, and whatever follows from it."""
    queue: list[tuple[int, Event]] = [(number, event)]
    for _ in range(MAX_CHAIN):
        if not queue:
            break
        number, event = queue.pop(0)
        if world.window(number) is not None:
            world, more = _one(world, number, event)
            queue += more
    return world


def launch(world: World, app: str, argument: str = "", parent: int = 0, reply: str = "") -> World:
    """Start an app, or bring the window it has to the front; nothing happens if it does not run here."""
    if world.settings.get("form", "desktop") not in APPS[app].forms:
        return world
    if APPS[app].single and not parent:
        for window in world.windows:
            if window.app == app and not window.parent:
                world = wm.to_front(world, window.number)
                return deliver(world, window.number, Open(argument)) if argument else world
    if len(world.windows) >= limits.WINDOWS:
        return world
    state = APPS[app].start(argument, Reader(world, app))
    return wm.open_window(world, app, state, parent, reply)


def refuse(world: World, number: int, words: str) -> World:
    """Say why something is not done, in a dialog of a window: `words` of `limits`."""
    return launch(world, "dialog.message", "\x1f".join((tr(words), "warning", "", "ok")), number, "refused")


def request_close(world: World, number: int) -> World:
    """Ask a window's app whether it may be closed, and close it if so."""
    return deliver(world, number, Closing())


def _one(world: World, number: int, event: Event) -> tuple[World, list[tuple[int, Event]]]:
    window = world.window(number)
    assert window is not None
    if isinstance(event, Command) and event.id.startswith("window."):
        if event.id == "window.close":
            return world, [(number, Closing())]
        return wm.command(world, number, event.id.removeprefix("window.")), []
    system = System(world, window)
    state = APPS[window.app].handle(bound(window.state, event), event, system)
    world = system.world
    if isinstance(event, Closing) and not system.stays_open:
        if window.parent:
            system.reply(None)
        system.is_closed = True
    if system.is_closed:
        world = wm.close(world, number)
    else:
        interface = window.interface
        if system.focused is not None:
            interface = interface._replace(focus=system.focused)
        if system.focused is not None and system.selection is not None:
            cursors = {**interface.cursors, system.focused: system.selection}
            interface = interface._replace(cursors=cursors)
        if system.is_revealed and system.focused is not None and system.selection is not None:
            scroll = {**interface.scroll, system.focused: -1 - system.selection.anchor}
            interface = interface._replace(scroll=scroll)
        if state is not window.state or interface is not window.interface:
            world = with_window(world, window._replace(state=state, interface=interface))
    for app, argument, parent, reply in system.to_open:
        world = launch(world, app, argument, parent, reply)
    return world, system.pending


def bound(state: Any, event: Event) -> Any:
    """The state with a Change in the field of its id, if it has one."""
    if isinstance(event, Change) and event.id in getattr(type(state), "__dataclass_fields__", {}):
        return dataclasses.replace(state, **{event.id: event.value})
    return state
