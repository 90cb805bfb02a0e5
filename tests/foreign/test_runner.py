"""An event loop called from code without one: what it returns is not described on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from vlrl.foreign.runner import result_of


class Trajectories:
    """A result that is expensive to describe."""

    num_described = 0

    def __repr__(self) -> str:
        type(self).num_described += 1
        return "all arrays"


async def play() -> Trajectories:
    await asyncio.sleep(0)
    return Trajectories()


def times_described(call: Callable[[asyncio.Runner, Coroutine[Any, Any, Trajectories]], Trajectories]) -> int:
    """How often a call describes its result, with Python's own handler of Ctrl-C."""
    before, Trajectories.num_described = signal.getsignal(signal.SIGINT), 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with asyncio.Runner() as runner:
            assert isinstance(call(runner, play()), Trajectories)
    finally:
        signal.signal(signal.SIGINT, before)
    return Trajectories.num_described


def test_a_result_is_not_described() -> None:
    assert times_described(result_of) == 0


def test_asyncio_describes_it() -> None:
    """The reason for a function of our own; where no supported Python does it, Runner.run is enough."""
    assert times_described(asyncio.Runner.run) > 0


def test_what_is_raised_comes_through() -> None:
    async def fail() -> None:
        raise ValueError("no environment")

    with asyncio.Runner() as runner, pytest.raises(ValueError, match="no environment"):
        result_of(runner, fail())


def test_ctrl_c_cancels_what_runs() -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with asyncio.Runner() as runner, pytest.raises(KeyboardInterrupt):
            result_of(runner, wait())
    finally:
        signal.signal(signal.SIGINT, before)
    assert cancelled.is_set()
