"""An environment called from plain code, whether its own methods are async or not."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from vlrl.environment.open import open_env
from vlrl.errors import ConfigError
from vlrl.foreign.runner import result_of
from vlrl.protocols import Env, Observation, StepResult


class PlainEnv:
    """One environment in the calling thread; async methods run in an event loop that it keeps for them.

    Attributes:
        env: the environment itself.
        agents: of an environment of several; else empty.
    """

    def __init__(self, name: str, options: Mapping[str, Any], *, several: bool = False) -> None:
        """Make it.

        Args:
            name: registered, or ./file.py:Class.
            options: the environment's own.
            several: it may have several agents; then only `agents`, `has`, `call` and `close` are of use.

        Raises:
            ConfigError: for an unknown name, a wrong option, or an environment of several agents.
        """
        self.env: Env = open_env(name, options)
        self._runner: asyncio.Runner | None = None
        self.agents: Sequence[str] = tuple(getattr(self.env, "agents", ()))
        if self.agents and not several:
            self.close()
            raise ConfigError(
                f"env {name!r} has several agents; give options that leave one of them to the policy, "
                "such as opponents, or use an environment of one agent"
            )

    @property
    def system_prompt(self) -> str:
        """Its instructions; "" if it has none."""
        return str(getattr(self.env, "system_prompt", "") or "")

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """JSON schemas of its functions."""
        return getattr(self.env, "tools", None) or ()

    def has(self, method: str) -> bool:
        """True if it has one of the optional methods."""
        return callable(getattr(self.env, method, None))

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode."""
        observation: Observation = self.call("reset", task, seed)
        return observation

    def step(self, action: str) -> StepResult:
        """Apply an action."""
        result: StepResult = self.call("step", action)
        return result

    def call(self, method: str, *arguments: Any) -> Any:
        """Call any of its methods."""
        value = getattr(self.env, method)(*arguments)
        if not inspect.isawaitable(value):
            return value
        self._runner = self._runner or asyncio.Runner()

        async def wait() -> Any:
            return await value

        return result_of(self._runner, wait())

    def close(self) -> None:
        """Close it and its event loop; safe to call twice."""
        try:
            self.call("close")
        finally:
            if self._runner is not None:
                self._runner.close()
                self._runner = None

    def __enter__(self) -> PlainEnv:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
