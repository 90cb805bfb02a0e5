"""Work that several callers want at the same time, done once."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class _Flight(Generic[Result]):
    task: asyncio.Task[Result]
    num_waiting: int = 0


class SingleFlight(Generic[Result]):
    """One running task a key, on one event loop; whoever asks meanwhile gets the same result or error.

    The task is cancelled when the last of its waiters is. Nothing is kept once it has ended.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[Result]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """True while a task of that key runs."""
        return key in self._flights

    async def join(self, key: Hashable, start: Callable[[], Awaitable[Result]]) -> Result:
        """The result of the key's running task, or of `start()` if there is none."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.ensure_future(_run(start)))
            # Before any waiter hears of the end, so that one who then asks again starts afresh.
            flight.task.add_done_callback(functools.partial(self._land, key, flight))
        flight.num_waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.num_waiting -= 1
            if not flight.num_waiting and not flight.task.done():
                self._land(key, flight, flight.task)
                flight.task.cancel()

    def _land(self, key: Hashable, flight: _Flight[Result], _: asyncio.Task[Result]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _run(start: Callable[[], Awaitable[Result]]) -> Result:
    return await start()
