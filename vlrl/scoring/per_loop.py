"""One value for every event loop, such as an HTTP client: made at first use, closed when the loop ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """A value that belongs to the event loop that runs."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        """`make` is called in a running loop, `close` in the same loop at its end."""
        self._make, self._close = make, close
        self._made: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None]]] = {}

    async def get(self) -> T:
        """The running loop's value."""
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            value = self._make()
            self._made[loop] = value, self._closer(loop, value)
            await anext(self._made[loop][1])
        return self._made[loop][0]

    async def _closer(self, loop: asyncio.AbstractEventLoop, value: T) -> AsyncGenerator[None]:
        """asyncio.run and asyncio.Runner close a loop's asynchronous generators at its end."""
        try:
            yield
        finally:
            del self._made[loop]
            await self._close(value)
