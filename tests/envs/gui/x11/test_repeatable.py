"""What real time could change: clicks of two actions, and a screen that is looked at too early."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from x11_traces import MACHINE

from vlrl.envs import process_tree
from vlrl.envs.gui.actions import Action, Click, OpenApp, TypeText
from vlrl.envs.gui.x11 import settle as settling
from vlrl.envs.gui.x11.desktop import Desktop
from vlrl.envs.gui.x11.sandbox import processes
from vlrl.envs.gui.x11.sandbox.processes import Rest, cpu_time, rest_of

ECHO = "import sys\nfor line in sys.stdin: sum(range(10**6))"


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that works for a moment when it is told to, and sleeps again."""
    with subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, bufsize=0) as process:
        wake(process)
        yield process
        process.kill()


def wake(process: subprocess.Popen[bytes]) -> None:
    """Return when it has worked."""
    assert process.stdin is not None
    before = cpu_time([process.pid])
    process.stdin.write(b"\n")
    while cpu_time([process.pid])[process.pid] - before[process.pid] < 1e-3:
        time.sleep(0.001)


def settled(process: subprocess.Popen[bytes], server: int, budget_s: float = 30.0) -> bool:
    return settling.settle(lambda: [process.pid], server, budget_s)


def test_who_wakes_while_others_are_looked_at_is_seen(
    worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def rest_of(pids: object) -> Rest:
        looks.append(1)
        if len(looks) <= 3:
            wake(worker)  # it had been looked at, and found asleep
        return Rest(False, math.inf)

    monkeypatch.setattr(settling, "rest_of", rest_of)
    assert settled(worker, worker.pid) and len(looks) > 3


def test_who_wakes_between_the_two_looks_at_it_is_busy(
    worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dialog's timer ended between them: its button stayed grey, once in 130 times."""

    def read_proc(path: str) -> bytes:
        return b"running\n" if path.endswith("/syscall") else process_tree.read_proc(path)

    while rest_of([worker.pid]).is_busy:
        time.sleep(0.001)
    monkeypatch.setattr(processes, "read_proc", read_proc)
    assert rest_of([worker.pid]).is_busy


def test_short_timers_are_waited_for_as_long_as_they_draw(
    worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "rest_of", lambda pids: Rest(False, 0.1))
    over = threading.Event()

    def draw() -> None:
        for _ in range(20):
            wake(worker)
            time.sleep(0.1)
        over.set()

    thread = threading.Thread(target=draw)
    thread.start()
    assert settled(worker, worker.pid)
    was_over = over.is_set()
    thread.join()
    assert was_over


def pixels_after(actions: list[Action]) -> np.ndarray:  # type: ignore[type-arg]
    desktop = Desktop(MACHINE)
    try:
        for action in actions:
            screen = desktop.perform(action)
        return screen.pixels
    finally:
        desktop.close()


def test_the_clicks_of_two_actions_are_no_double_click() -> None:
    word = (150, 38)  # of a line in the terminal
    begin: list[Action] = [OpenApp("xterm"), TypeText("selected")]
    once = pixels_after([*begin, Click(word)])
    assert np.array_equal(pixels_after([*begin, Click(word), Click(word)]), once)
    assert not np.array_equal(pixels_after([*begin, Click(word, count=2)]), once)


def test_the_same_holds_for_the_window_manager(desktop: Desktop) -> None:
    desktop.perform(OpenApp("xterm"))
    before = desktop.windows()
    title = ((before[0].box[0] + before[0].box[2]) // 2, before[0].box[1] - 8)
    for _ in range(3):
        desktop.perform(Click(title))
    assert desktop.windows() == before
    desktop.perform(Click(title, count=2))
    assert desktop.windows()[0].box != before[0].box  # maximized
