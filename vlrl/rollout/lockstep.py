"""A barrier before the policy: actions are generated when every running episode waits for one (law 8)."""

from __future__ import annotations

import asyncio

from vlrl.protocols import Policy
from vlrl.rollout.session import Session
from vlrl.types import Generation, Sampling


class Lockstep:
    """Hands requests on to their policies all at once, in the order of the episodes.

    Consumes: requests of running episodes. Waits for: as many requests as there are running episodes.
    Unblocked by: the last request, or the end of an episode that made none.
    """

    def __init__(self, *, waits: bool = True) -> None:
        """Hand requests on as they come if `waits` is false."""
        self._waits = waits
        self._num_running = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def start(self) -> None:
        """An episode runs from here on: it will ask, or end."""
        self._num_running += 1

    def end(self) -> None:
        """An episode has ended. One that takes its slot, a turn of the event loop later, starts first."""
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._ended)

    def at(self, order: int, policy: Policy) -> Policy:
        """The policy as an episode sees it; order is its number among the episodes of the step."""
        return _Ordered(self, order, policy) if self._waits else policy

    async def turn(self, order: int) -> None:
        """Wait for the others."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((order, turn))
        loop.call_soon(self._release)  # not now: the last to come would go first
        await turn

    def _ended(self) -> None:
        self._num_running -= 1
        self._release()

    def _release(self) -> None:
        waiting = [(order, turn) for order, turn in self._waiting if not turn.cancelled()]
        if waiting and len(waiting) >= self._num_running:
            self._waiting = []
            for _, turn in sorted(waiting, key=lambda each: each[0]):
                turn.set_result(None)


class _Ordered:
    def __init__(self, lockstep: Lockstep, order: int, policy: Policy) -> None:
        self._lockstep, self._order, self._policy = lockstep, order, policy

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        await self._lockstep.turn(self._order)
        return await self._policy.generate(session, sampling)
