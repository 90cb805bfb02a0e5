"""An app that is open, and what a person does with it, said in intents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.oracle.intents import Intent, next_of, open_app
from vlrl.envs.gui.emu.oracle.reach import Locator
from vlrl.envs.gui.screen import Form

PLAIN = {"language": "en", "menus": "bar"}


def running(app: str, form: Form = "desktop", looks: Mapping[str, Any] = PLAIN, **store: Any) -> Desktop:
    """A desktop with an app open, and what the apps keep."""
    desktop = EmuEnv(form=form, **looks).backend
    assert isinstance(desktop, Desktop)
    desktop.reset({"name": "basics/click_button"}, 0)
    now = desktop.snapshot()
    desktop.restore(now._replace(world=now.world._replace(store=store, windows=())))
    do(desktop, open_app(app))
    return desktop


def do(desktop: Desktop, *intents: Intent) -> None:
    """Carry intents out, one after the other."""
    for intent in intents:
        is_last = False
        while not is_last:
            action, is_last = next_of([intent], Locator(desktop._scene, desktop.world))
            desktop.perform(action)
