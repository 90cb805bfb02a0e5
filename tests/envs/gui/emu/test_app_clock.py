"""Clock and contacts: what they keep, and what the virtual clock makes of it."""

from __future__ import annotations

import pytest

from vlrl.envs.gui.actions import Click, Key, TypeText, Wait
from vlrl.envs.gui.emu.apps.contacts import Contact, named
from vlrl.envs.gui.emu.apps.parts.alarms import Kept
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv


class User:
    """Somebody who clicks on what has a name."""

    def __init__(self, task: str, level: int = 1) -> None:
        backend = EmuEnv(language="en", scale=100, size=(800, 600)).backend
        assert isinstance(backend, Desktop)
        self.desktop = backend
        self.desktop.reset({"name": task, "difficulty": level}, 2)

    def click(self, name: str, role: str = "button") -> None:
        """Click on the front one."""
        found = [e for e in self.desktop.elements() if e.name == name and e.role == role]
        x0, y0, x1, y1 = found[-1].box
        self.desktop.perform(Click(((x0 + x1) // 2, (y0 + y1) // 2)))

    def sees(self, text: str) -> bool:
        """Whether a text is on the screen."""
        return any(text in e.name for e in self.desktop.elements())

    @property
    def clock(self) -> Kept:
        """What the clock keeps."""
        kept = self.desktop.world.store["clock"]
        assert isinstance(kept, Kept)
        return kept


def test_the_timer_runs_by_the_virtual_clock() -> None:
    user = User("clock/timer")
    user.click("Timer", "tab")
    user.click("Minutes −")
    user.click("Start")
    assert user.clock.timer_ms == 4 * 60_000 and user.sees("Running until")
    user.desktop.perform(Wait(5 * 60_000))
    assert user.sees("Time is up!")
    user.click("Stop")
    assert user.clock.timer_ms == 0 and not user.sees("Time is up!")


def test_the_stopwatch_counts_only_while_it_runs() -> None:
    user = User("clock/laps")
    user.click("Stopwatch", "tab")
    user.click("Lap")  # stands still: nothing to take
    user.click("Start")
    user.desktop.perform(Wait(30_000))
    user.click("Lap")
    user.click("Stop")
    user.desktop.perform(Wait(60_000))
    kept = user.clock
    assert len(kept.laps) == 1 and 30_000 <= kept.laps[0] < kept.watch_ms < 40_000
    assert user.sees("00:3")


def test_contacts_are_added_and_keep_different_names() -> None:
    user = User("contacts/edit")
    known = user.desktop.world.store["contacts"]
    user.click("New contact")
    user.desktop.perform(TypeText(known[0].name))
    user.click("Save")
    assert user.desktop.world.store["contacts"] == known and user.sees("This name is taken.")
    user.click("OK")
    user.desktop.perform(Key(("ctrl", "a")))
    user.desktop.perform(TypeText("Zora Zweig\t123"))
    user.click("Save")
    assert named(user.desktop.world.store["contacts"], "Zora Zweig") == Contact("Zora Zweig", "123")


@pytest.mark.parametrize(("search", "left"), [("", 8), ("zzz", 0)])
def test_contacts_are_searched(search: str, left: int) -> None:
    user = User("contacts/edit")
    user.click("Search", "textbox")
    user.desktop.perform(TypeText(search))
    assert sum(e.role == "option" for e in user.desktop.elements()) == left
