"""Episodes of the emulated desktop that its oracle plays to the end."""

from __future__ import annotations

from typing import Any

from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.oracle.reach import Stuck
from vlrl.envs.gui.emu.task import TEMPLATES
from vlrl.envs.gui.screen import Form


def failures(form: Form, names: list[str], seed: int, **options: Any) -> list[str]:
    """Tasks that the oracle does not do, at every level; in words."""
    desktop, failed = EmuEnv(form=form, **options).backend, []
    assert isinstance(desktop, Desktop)
    for name in names:
        for level in TEMPLATES[name].levels:
            desktop.reset({"name": name, "difficulty": level}, seed)
            try:
                for _ in range(desktop.max_steps):
                    if desktop.verdict().success:
                        break
                    desktop.perform(desktop.oracle())
            except Stuck as error:
                failed.append(f"{name} {level} {seed} {options}: {error}")
            else:
                if not desktop.verdict().success:
                    failed.append(f"{name} {level} {seed} {options}: {desktop.verdict().milestones}")
    return failed
