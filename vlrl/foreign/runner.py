"""Coroutines that are called from code without an event loop, such as a plug-in's."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def result_of(runner: asyncio.Runner, coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns or raises, run by asyncio.Runner at the same cost for every result.

    In a main thread with Python's own handler of Ctrl-C, asyncio.Runner sets a handler that holds the task,
    and takes it away at the end. The signal module describes the handler each time before it finds that it
    is not a number, and with it the task and its result: all arrays of a batch, or a screenshot.
    """
    results: list[T] = []

    async def keep_result() -> None:
        results.append(await coroutine)

    runner.run(keep_result())
    return results[0]
