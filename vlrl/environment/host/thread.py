"""An environment in a thread of its own, where it is made, used and closed: some libraries insist on it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from vlrl.environment.host.answers import Traits, traits_of
from vlrl.environment.host.calls import Outcome, attempt, is_async, options_of, overdue, perform, result
from vlrl.environment.host.failure import HOST_CLOSED, EnvFailure
from vlrl.environment.host.inline import CLOSE_LIMIT_S, LoopCalls
from vlrl.environment.open import open_env
from vlrl.registry import resolve
from vlrl.types import EnvTask

_Work = tuple[Callable[[], Outcome], asyncio.Future[Outcome] | None]


class WorkThread:
    """A thread that performs one call after the other. One that hangs never keeps the process from ending."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._future: asyncio.Future[Outcome] | None = None
        self._num_begun = self._num_done = 0
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """True while a call has not returned, even if it is no longer awaited."""
        return self._num_done < self._num_begun

    async def outcome(self, call: Callable[[], Outcome], limit_s: float) -> Outcome:
        """The outcome of a call, or that it hung."""
        self._future = future = asyncio.get_running_loop().create_future()
        self._num_begun += 1
        self._queue.put((call, future))
        # A loop that was itself busy for so long sees what is done before it sees the time.
        await asyncio.wait([future], timeout=limit_s)
        return future.result() if future.done() else overdue(limit_s)

    def dismiss(self, last: Callable[[], Outcome]) -> None:
        """Let the thread end after the call that runs and `last`."""
        self._queue.put((last, None))
        self._queue.put(None)

    def join(self, limit_s: float) -> None:
        """Wait until it has ended, or for that long."""
        self._thread.join(limit_s)

    def fail(self, outcome: Outcome) -> None:
        """Give this outcome to the call that is awaited."""
        if self._future and not self._future.done():
            self._future.set_result(outcome)

    def _serve(self) -> None:
        while work := self._queue.get():
            call, future = work
            outcome = call()
            if future:
                self._num_done += 1
                with suppress(RuntimeError):  # the event loop that asked has been closed
                    future.get_loop().call_soon_threadsafe(_settle, future, outcome)


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


class EnvInThread:
    """One environment and its thread, which serve episode after episode.

    Attributes:
        key: of all specs that it can serve; None for this episode's alone.
    """

    traits = Traits("", (), {})

    def __init__(
        self, spec: EnvTask, key: tuple[str, str] | None, keep: Callable[[EnvInThread, bool], bool]
    ) -> None:
        """Start the thread.

        Args:
            spec: its name and options.
            key: of the spec.
            keep: asked when an episode ends, well or not: whether it is kept for another one.
        """
        self.key = key
        self._spec, self._keep = spec, keep
        self._thread = WorkThread(f"env {spec.name}")
        self._env: Any = None
        self._calls = LoopCalls()

    async def open(self, limit_s: float) -> bool:
        """Make the environment in the thread; False if it is async, and so not for threads.

        Raises:
            EnvFailure, ConfigError: of its constructor.
        """
        is_open = False
        try:
            traits = result(await self._thread.outcome(lambda: attempt(self._make), limit_s))
            if traits is not None:
                self.traits, is_open = traits, True
        finally:
            if not is_open:
                self.dismiss()
        return is_open

    def _make(self) -> Traits | None:
        if is_async(resolve("envs", self._spec.name)):
            return None
        self._env = open_env(self._spec.name, options_of(self._spec.options))
        if is_async(type(self._env)):  # of a factory: what it awaits belongs to the event loop of one episode
            self.key = None
        return traits_of(self._env)

    async def perform(self, method: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        """Call a method.

        Raises:
            EnvFailure, ConfigError: of the method.
        """
        return await self._perform(self._env, method, arguments, limit_s)

    async def _perform(self, env: Any, method: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        outcome = await self._thread.outcome(lambda: perform(env, method, arguments), limit_s)
        if inspect.iscoroutine(outcome):
            outcome = await self._calls.outcome(outcome, limit_s)
        return result(outcome)

    async def leave(self, healthy: bool) -> None:
        """End an episode: it is kept, or closed in its thread; if that is busy, whenever it is done."""
        kept = False
        try:
            await self._calls.ended()
            kept = self._keep(self, healthy and not self._thread.busy)
            if not kept and not self._thread.busy:
                env, self._env = self._env, None
                await self._perform(env, "close", (), CLOSE_LIMIT_S)
        finally:
            if not kept:
                self.dismiss()

    def dismiss(self) -> None:
        """Close it and end the thread, after the call that runs."""
        self._thread.dismiss(self._close)

    def join(self, limit_s: float) -> None:
        """Wait until it is closed, or for that long."""
        self._thread.join(limit_s)

    def _close(self) -> Outcome:
        return None if self._env is None else perform(self._env, "close", ())

    def end(self) -> None:
        """Stop what can be stopped: pending calls fail."""
        self._thread.fail(EnvFailure("died", HOST_CLOSED))
        self._calls.end()
