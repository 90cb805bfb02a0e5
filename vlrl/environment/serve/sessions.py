"""Sessions: one episode each, begun, stepped and ended by a client that may repeat itself or vanish.

    begin(id) ──► step(id, 1) ──► step(id, 2) ──► … ──► end(id)      or: not heard of for lease_s

A call that is repeated is answered again, not performed again: of each session the last answer is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vlrl.coordinates import Canvas
from vlrl.environment.host.host import EnvHost, HostedEnv
from vlrl.errors import VlrlError
from vlrl.types import EnvTask

NUM_REMEMBERED = 65_536
"""Ended sessions that are remembered, to answer late requests."""


class SessionRefused(Exception):
    """A request that cannot be met.

    Attributes:
        status: of HTTP.
        kind: one word for the client.
    """

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.kind = status, kind


@dataclass(slots=True)
class _Session:
    asked: Any = None
    """The last call, by which a repetition is known."""
    answer: asyncio.Task[Any] | None = None
    number: int = 0
    """Number of the last step; 0 is the reset."""
    env: HostedEnv | None = None
    used_at: float = field(default_factory=time.monotonic)


class Sessions:
    """The episodes of one server, in one event loop."""

    def __init__(
        self, host: EnvHost, name: str, options: Mapping[str, Any], max_sessions: int, lease_s: float
    ) -> None:
        self._host, self._name, self._options = host, name, options
        self.max_sessions, self.lease_s = max_sessions, lease_s
        self._open: dict[str, _Session] = {}
        self._ended: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def begin(self, session_id: str, task: Mapping[str, Any], seed: int) -> Any:
        """Start an episode; its first observation.

        Raises:
            Refused: if there is no room, or the id has been used for something else.
            VlrlError: of the environment.
        """
        asked = ("begin", task, seed)
        session = self._open.get(session_id)
        if session is None:
            self._refuse_ended(session_id)
            if len(self._open) >= self.max_sessions:
                raise SessionRefused(
                    503, "full", f"all of {self.max_sessions} sessions are in use (--max-sessions)"
                )
            session = self._open[session_id] = _Session()
            self._start(session, asked, self._begin(session, task, seed))
        elif session.asked != asked:
            raise SessionRefused(
                409, "order", f"session {session_id} has been begun already, with another task"
            )
        return await self._answered(session_id, session)

    async def step(self, session_id: str, number: int, action: Any, canvases: Sequence[Canvas]) -> Any:
        """Perform a step, or answer it once more if it is the last one again.

        Args:
            session_id: of an episode that has begun.
            number: 1, 2, 3, …
            action: a text, or a mapping of them by agent.
            canvases: how the last observation's images were shown, if the client knows.

        Raises:
            Refused: for an unknown or ended session, and a number out of order.
            VlrlError: of the environment.
        """
        session = self._find(session_id)
        asked = (number, action, tuple(canvases))
        if session.asked != asked:
            busy = session.answer is not None and not session.answer.done()
            if number != session.number + 1 or busy:
                state = "is still being answered" if busy else "was the last"
                raise SessionRefused(
                    409, "order", f"step {number} of session {session_id}: {session.number} {state}"
                )
            session.number = number
            self._start(session, asked, self._step(session, action, canvases))
        return await self._answered(session_id, session)

    async def end(self, session_id: str, reason: str = "it was closed") -> None:
        """Free the session's environment; does nothing to one that is not open."""
        session = self._open.pop(session_id, None)
        if session is None:
            return
        self._ended[session_id] = reason
        if len(self._ended) > NUM_REMEMBERED:
            del self._ended[next(iter(self._ended))]
        if session.answer is not None and not session.answer.done():
            session.answer.cancel()
            await asyncio.wait([session.answer])
        if session.env is not None:
            env, session.env = session.env, None
            await env.close()

    async def expire(self) -> None:
        """End sessions whose clients have not been heard of for lease_s, now and ever again."""
        while True:
            await asyncio.sleep(min(self.lease_s / 4, 5.0))
            before = time.monotonic() - self.lease_s
            for session_id, session in list(self._open.items()):
                idle = session.answer is None or session.answer.done()
                if idle and session.used_at < before:
                    await self.end(session_id, f"its lease of {self.lease_s:g} s expired (--lease-s)")

    async def close(self) -> None:
        """End all."""
        for session_id in list(self._open):
            await self.end(session_id, "the server is closing")

    def _find(self, session_id: str) -> _Session:
        if session_id in self._open:
            return self._open[session_id]
        self._refuse_ended(session_id)
        raise SessionRefused(404, "unknown", f"there is no session {session_id}")

    def _refuse_ended(self, session_id: str) -> None:
        if session_id in self._ended:
            raise SessionRefused(410, "ended", f"session {session_id} is over: {self._ended[session_id]}")

    def _start(self, session: _Session, asked: Any, call: Coroutine[Any, Any, Any]) -> None:
        """Work in a task of its own: a client that goes away does not stop it, and may ask again."""
        session.asked, session.answer = asked, asyncio.create_task(call)

    async def _answered(self, session_id: str, session: _Session) -> Any:
        assert session.answer is not None
        session.used_at = time.monotonic()
        await asyncio.wait([session.answer])
        session.used_at = time.monotonic()
        if session.answer.cancelled():
            self._refuse_ended(session_id)
        try:
            return session.answer.result()
        except VlrlError as failure:
            await self.end(session_id, f"its episode failed: {failure}")
            raise

    async def _begin(self, session: _Session, task: Mapping[str, Any], seed: int) -> Any:
        session.env = await self._host.open(EnvTask(self._name, self._options, task, seed))
        return await session.env.reset()

    async def _step(self, session: _Session, action: Any, canvases: Sequence[Canvas]) -> Any:
        assert session.env is not None
        if canvases and session.env.sees:
            await session.env.seen(canvases)
        return await session.env.step(action)
