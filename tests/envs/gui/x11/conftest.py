"""Desktops for tests: each ends with its test."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from x11_traces import MACHINE

from vlrl.envs.gui.actions import Key, OpenApp, TypeText
from vlrl.envs.gui.x11.desktop import Desktop


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    """A bare desktop of 800×600 that waits for its apps however busy the machine."""
    made = Desktop(replace(MACHINE, settle_s=30.0))
    yield made
    made.close()


@pytest.fixture
def in_terminal(desktop: Desktop) -> Callable[[str], str]:
    """What a command, typed into the desktop's terminal, prints."""
    return terminal(desktop)


@pytest.fixture(scope="module")
def in_shared_terminal() -> Iterator[Callable[[str], str]]:
    """The same on a desktop for all of a file's tests that only look around."""
    made = Desktop(MACHINE)
    yield terminal(made)
    made.close()


def terminal(desktop: Desktop) -> Callable[[str], str]:
    desktop.perform(OpenApp("xterm"))

    numbers = itertools.count()

    def run(command: str) -> str:
        number = next(numbers)  # files of its own: the terminal may still be at work on the command before
        said, done = f".said{number}", f".done{number}"
        for _ in range(3):
            # A window that the command before opened takes the focus as it closes, on a busy machine after
            # the desktop seemed at rest; keys that come before go nowhere, all or some of a line.
            desktop.settle(60)
            # Ctrl+C, for half a line that was entered: bash may wait for the end of its group or quote.
            desktop.perform(Key(("ctrl", "c")))
            desktop.perform(TypeText(f"{{ {command}; }} > {said} 2>&1; touch {done}\n"))
            if appears(said, within_s=10):
                break
        assert appears(done, within_s=60)
        with os.fdopen(os.open(said, os.O_RDONLY, dir_fd=desktop.home)) as file:
            return file.read()

    def appears(name: str, within_s: float) -> bool:
        end = time.monotonic() + within_s
        while not os.access(name, os.F_OK, dir_fd=desktop.home):
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    return run
