"""A run beside a notebook's event loop, and in threads."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from vlrl.process.event_loop import beside_event_loop
from vlrl.process.interrupts import Interrupts, _Starting


def play() -> tuple[str, str]:
    """What a run does: an event loop of its own."""

    async def inside() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    with asyncio.Runner() as runner:
        return runner.run(inside()), threading.current_thread().name


def test_without_a_loop_it_is_called_where_it_is() -> None:
    assert beside_event_loop(play) == ("MainThread", "MainThread")


def test_beside_a_loop_it_has_one_of_its_own() -> None:
    async def notebook() -> tuple[str, str]:
        return beside_event_loop(play)

    inner, outer = asyncio.run(notebook())
    assert inner == outer and inner.startswith("vlrl-run")


def test_what_it_raises_is_raised() -> None:
    async def notebook() -> None:
        beside_event_loop(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(notebook())


def test_ctrl_c_asks_it_to_finish_its_step(capfd: pytest.CaptureFixture[str]) -> None:
    begun = threading.Event()

    def run() -> str:
        with Interrupts() as interrupts:
            interrupts.graceful, interrupts.step = True, 7
            begun.set()
            while not interrupts.requested:
                time.sleep(0.01)
        return "saved"

    def press() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    async def notebook() -> str:
        threading.Thread(target=press).start()
        return beside_event_loop(run)

    before = signal.getsignal(signal.SIGTERM)
    loop = asyncio.new_event_loop()  # asyncio.run would take Ctrl-C for itself, as notebooks do not
    try:
        assert loop.run_until_complete(notebook()) == "saved"
    finally:
        loop.close()
    assert "finishing step 7, then saving" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before


def test_one_that_has_not_begun_yet_is_asked_when_it_does() -> None:
    def run() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        deadline = time.monotonic() + 60
        while not _Starting.requested and time.monotonic() < deadline:
            time.sleep(0.01)
        with Interrupts() as interrupts:
            return interrupts.requested

    async def notebook() -> bool:
        return beside_event_loop(run)

    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(notebook())
    finally:
        loop.close()
