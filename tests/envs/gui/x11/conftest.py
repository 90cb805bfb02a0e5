"""Desktops for tests: each ends with its test."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator

import pytest
from x11_traces import MACHINE

from vlrl.envs.gui.actions import OpenApp, TypeText
from vlrl.envs.gui.x11.desktop import Desktop


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    """A bare desktop of 800×600."""
    made = Desktop(MACHINE)
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
        # On a busy machine an action's budget may end before the terminal has the focus, or again after
        # a window that the command before opened; keys that come earlier go nowhere.
        desktop.settle(60)
        number = next(numbers)  # files of its own: the terminal may still be at work on the command before
        said, done = f".said{number}", f".done{number}"
        desktop.perform(TypeText(f"{{ {command}; }} > {said} 2>&1; touch {done}\n"))
        for _ in range(6000):
            if os.access(done, os.F_OK, dir_fd=desktop.home):
                break
            time.sleep(0.01)
        with os.fdopen(os.open(said, os.O_RDONLY, dir_fd=desktop.home)) as file:
            text = file.read()
        desktop.perform(TypeText(f"rm {said} {done}\n"))
        return text

    return run
