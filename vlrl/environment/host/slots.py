"""A semaphore that serves in order, and that successive event loops can use."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """A number of slots; one that is given back goes straight to the caller that has waited longest."""

    def __init__(self, number: int) -> None:
        self._num_free = number
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a slot; a caller that is cancelled meanwhile has none."""
        if self._num_free:
            self._num_free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was handed the slot in the same moment
                self.give_back()
            raise

    def give_back(self) -> None:
        """Free a slot."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._num_free += 1

    def fail(self, error: Exception) -> None:
        """Have all who wait raise this."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)
