"""Emulated desktops on which one app has documents that a test made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.files import write
from vlrl.envs.gui.emu.input.events import Event
from vlrl.envs.gui.emu.state import World


def desktop_with(app: str, files: Mapping[str, Any], argument: str, **options: Any) -> Desktop:
    """A desktop with files, path → content, and the app that was launched with the argument."""
    looks = {"widgets": "classic", "windows": "one", "theme": "daylight", "language": "en", **options}
    desktop = EmuEnv(tasks="desktop/open_app", **looks).backend
    assert isinstance(desktop, Desktop)
    desktop.reset({}, 0)
    written = desktop.world.files
    for path, content in files.items():
        written = write(written, path, content, 0)
    world = update.launch(desktop.world._replace(files=written), app, argument)
    desktop.restore(desktop.snapshot()._replace(world=world))
    return desktop


def after(world: World, *events: Event) -> World:
    """The world after events of the app's window, which dialogs lie over."""
    number = world.windows[0].number
    for event in events:
        world = update.deliver(world, number, event)
    return world
