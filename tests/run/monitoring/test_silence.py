"""Who waits for whom, since when, and when that is told."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vlrl.machine.stacks import state_of
from vlrl.process.watched import ProcessFacts
from vlrl.run.monitoring.silence import SilenceWatch
from vlrl.run.monitoring.waits import DriverWait, Waits, words

CHILD = """
import threading, time
from vlrl.process.watched import ProcessFacts
def in_a_thread():
    while True:
        time.sleep(1)
def at_work():
    print(facts.pid, facts.stacks_file, flush=True)
    while True:
        sum(range(1000000))
facts = ProcessFacts.own()
threading.Thread(target=in_a_thread, daemon=True).start()
at_work()
"""


@pytest.fixture
def child() -> Iterator[ProcessFacts]:
    """A process that computes, and offers its stacks."""
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid, file = process.stdout.readline().split()
    yield ProcessFacts(int(pid), file)
    process.kill()
    process.wait()


def test_a_process_that_computes_shows_the_stacks_of_all_threads(child: ProcessFacts) -> None:
    for _ in range(2):  # as often as it is asked, what is new
        text = child.stacks()
        assert f"process {child.pid} computes:" in text and text.count("at_work") == 1
        assert "in_a_thread" in text


def test_a_process_that_is_stopped_or_gone_is_said_to_be(child: ProcessFacts) -> None:
    os.kill(child.pid, signal.SIGSTOP)
    while state_of(child.pid) != "T":
        time.sleep(0.01)
    begin = time.monotonic()
    assert child.stacks() == f"process {child.pid} is stopped (state T) and does not answer"
    assert time.monotonic() - begin < 1
    os.kill(child.pid, signal.SIGKILL)
    while state_of(child.pid) not in ("", "Z"):
        time.sleep(0.01)
    assert "process" in (text := child.stacks()) and ("gone" in text or "is dead" in text)


class Loop:
    """An event loop in a thread, where functions of a module of vlrl's wait."""

    def __init__(self) -> None:
        self.loop, self.free = asyncio.new_event_loop(), asyncio.Event()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def wait_in(self, file: str) -> None:
        """Start a task whose innermost function is of a file of vlrl's."""
        scope: dict[str, Any] = {}
        source = (
            "async def step(event):\n    await event.wait()\nasync def play(event):\n    await step(event)"
        )
        exec(compile(source, f"/somewhere/vlrl/{file}", "exec"), scope)
        asyncio.run_coroutine_threadsafe(scope["play"](self.free), self.loop)
        time.sleep(0.2)  # until it waits

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.free.set)
        time.sleep(0.1)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.end()


def until_found(waits: Waits, num: int) -> list[DriverWait]:
    for _ in range(500):
        if len(found := [wait for wait in waits.look() if wait.who == "a task"]) == num:
            return found
        time.sleep(0.01)
    raise AssertionError(found)


def test_tasks_say_whom_they_wait_for_and_since_when(loop: Loop) -> None:
    now = [100.0]
    waits = Waits(-1, loop.loop, clock=lambda: now[0])
    loop.wait_in("environment/host/host.py")
    until_found(waits, 1)
    now[0] = 130.0
    loop.wait_in("engine/client/link.py")
    loop.wait_in("engine/client/link.py")
    loop.wait_in("scoring/compose.py")
    until_found(waits, 4)
    now[0] = 150.0
    found = until_found(waits, 4)
    assert (found[0].whom, found[0].since) == ("an environment", 100.0)
    assert sorted(wait.whom for wait in found) == ["a reward", "an environment", "the engines", "the engines"]
    lines = words(found, 150.0).splitlines()
    assert lines[0] == "a task waits for an environment, since 50 s (vlrl/environment/host/host.py:2)"
    assert "2 tasks of the driver wait for the engines, since 20 s (vlrl/engine/client/link.py:2)" in lines


def test_the_driver_says_whom_it_waits_for() -> None:
    free, scope = threading.Event(), dict[str, Any]()
    source = "def fetch(event):\n    event.wait()\ndef step(event):\n    fetch(event)"
    exec(compile("def step(fetch):\n    fetch()", "/x/vlrl/trainer/driver.py", "exec"), scope)
    inner = dict[str, Any]()
    exec(compile(source, "/x/vlrl/cluster/calls.py", "exec"), inner)
    thread = threading.Thread(target=lambda: scope["step"](lambda: inner["step"](free)))
    thread.start()
    try:
        time.sleep(0.1)
        assert thread.ident is not None
        (wait,) = Waits(thread.ident).look()
        assert (wait.who, wait.whom) == ("the driver", "the ranks")
        assert wait.place == ("vlrl/cluster/calls.py", 2)  # the innermost of vlrl's, which says where
    finally:
        free.set()
        thread.join()


class Stopped:
    """A process that does not answer."""

    def __str__(self) -> str:
        return "rank 1"

    def stacks(self) -> str:
        return "process 7 is stopped (state T) and does not answer"


class FakeWaits(Waits):
    """Those that are set."""

    def __init__(self) -> None:
        self.found: list[DriverWait] = []

    def look(self) -> list[DriverWait]:
        return self.found


def test_a_silence_is_told_once_with_who_waits_and_again_after_progress(tmp_path: Path) -> None:
    now, steps, told, waits = [0.0], [0], list[tuple[str, str]](), FakeWaits()
    waits.found = [DriverWait("the driver", "the ranks", ("vlrl/trainer/driver.py", 9), 0.0)]
    watch = SilenceWatch(
        60.0,
        tmp_path,
        waits,
        lambda: [Stopped()],
        lambda: ["engine 0"],
        lambda: steps[0],
        lambda *event: told.append(event),
        clock=lambda: now[0],
    )

    def pass_by(seconds: float) -> None:
        for _ in range(int(seconds / 2)):
            now[0] += 2.0
            watch.look()

    pass_by(58)
    assert not told
    pass_by(100)
    ((event, text),) = told
    assert event == "silence"
    assert "the driver waits for the ranks, since 62 s (vlrl/trainer/driver.py:9)" in text
    assert "rank 1: process 7 is stopped (state T) and does not answer" in text
    assert "engine 0: has not started yet" in text
    (file,) = (tmp_path / "stacks").iterdir()
    assert str(file) in text and "=== rank 1" in file.read_text()
    steps[0] += 1
    pass_by(2)
    assert [event for event, _ in told] == ["silence", "silence_over"]
    pass_by(70)
    assert [event for event, _ in told] == ["silence", "silence_over", "silence"]


def test_who_waits_for_somebody_else_has_gone_on(tmp_path: Path) -> None:
    """The numbers of a step come at its end; until then what its parts wait for changes."""
    now, told, waits = [0.0], list[tuple[str, str]](), FakeWaits()
    watch = SilenceWatch(
        60.0, tmp_path, waits, list, list, lambda: 0, lambda *event: told.append(event), clock=lambda: now[0]
    )
    for second in range(0, 300, 10):
        now[0] = float(second)
        waits.found = [DriverWait("a task", "the engines", ("vlrl/engine/client/link.py", 9), float(second))]
        watch.look()
    assert not told
