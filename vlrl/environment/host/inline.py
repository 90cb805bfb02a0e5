"""An environment in the event loop: an async one, or one that answers at once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

from vlrl.environment.host.answers import Traits, traits_of
from vlrl.environment.host.calls import Outcome, attempt, options_of, overdue, perform, result
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.open import open_env
from vlrl.types import EnvTask

CLOSE_LIMIT_S = 5.0
"""What an environment is given to end in."""


class LoopCalls:
    """Coroutines of one environment, awaited one at a time under a limit each."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Outcome] | None = None

    async def outcome(self, coroutine: Coroutine[Any, Any, Outcome], limit_s: float) -> Outcome:
        """Its outcome, or that it hung; cancelled when it hangs or when the caller is."""
        self._task = task = asyncio.create_task(coroutine)
        try:
            # A loop that was itself busy for so long sees what is done before it sees the time.
            await asyncio.wait([task], timeout=limit_s)
            if not task.done():
                return overdue(limit_s)
            return EnvFailure("raised", "CancelledError") if task.cancelled() else task.result()
        finally:
            self.end()

    def end(self) -> None:
        """Stop what runs."""
        if self._task:
            self._task.cancel()

    async def ended(self) -> None:
        """Return when nothing runs any more, as far as that can be waited for."""
        if self._task and not self._task.done():
            await asyncio.wait([self._task], timeout=CLOSE_LIMIT_S)


class EnvInLoop:
    """One environment; of a method that is not async no limit can be held."""

    traits = Traits("", (), {})

    def __init__(self, spec: EnvTask) -> None:
        self._spec = spec
        self._env: Any = None
        self._calls = LoopCalls()

    def open(self) -> None:
        """Make it.

        Raises:
            EnvFailure, ConfigError: of its constructor.
        """
        self.traits = result(attempt(self._make))

    def _make(self) -> Traits:
        self._env = open_env(self._spec.name, options_of(self._spec.options))
        return traits_of(self._env)

    async def perform(self, method: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        """Call a method.

        Raises:
            EnvFailure, ConfigError: of the method.
        """
        outcome = perform(self._env, method, arguments)
        if inspect.iscoroutine(outcome):
            outcome = await self._calls.outcome(outcome, limit_s)
        return result(outcome)

    async def leave(self, healthy: bool) -> None:
        """Close it."""
        await self._calls.ended()
        await self.perform("close", (), CLOSE_LIMIT_S)

    def end(self) -> None:
        """Stop what runs."""
        self._calls.end()
