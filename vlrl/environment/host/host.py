"""Environments for a run's episodes: each in its slot, within its limits, and cleared away whatever it does.

    async with a slot: open(spec) ──► HostedEnv.reset, step, step, … ──► close: the slot is free again

A failure of an environment is an `EnvFailure`, a wrong setting a `ConfigError`; neither is ever a reward.
Those in processes and in threads that ended an episode well are kept for the next one with the same name and
options; in the event loop they are made again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, Self

from vlrl.config.rollout import EnvConfig
from vlrl.coordinates import Canvas
from vlrl.environment.host.answers import Traits
from vlrl.environment.host.env_pool import EnvPool
from vlrl.environment.host.env_threads import EnvThreads
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.inline import CLOSE_LIMIT_S, EnvInLoop
from vlrl.environment.host.slots import Slots
from vlrl.errors import InternalError
from vlrl.types import EnvTask

AroundFn = Callable[[str], AbstractContextManager[None]]


class HostedEnv(Protocol):
    """An environment as an episode uses it; one call at a time.

    Attributes:
        system_prompt: instructions that it gives; "" for none.
        tools: JSON schemas of its functions.
        system_prompts: of a `MultiAgentEnv`, for each agent; empty for an `Env`. The methods of one that has
            agents take and return a mapping by agent.
        sees: it wants the calls of `seen`.
        snapshots: it has `snapshot` and `restore`.
    """

    system_prompt: str
    tools: Sequence[Mapping[str, Any]]
    system_prompts: Mapping[str, str]
    sees: bool
    snapshots: bool

    async def reset(self) -> Any:
        """Start the task's episode; an Observation.

        Raises:
            EnvFailure: if it raised, hung or died; only `close` may follow.
            ConfigError: for a task that it does not take.
        """
        ...

    async def step(self, action: Any) -> Any:
        """Apply an action, a text; a StepResult. Raises as `reset` does."""
        ...

    async def seen(self, canvases: Sequence[Canvas]) -> None:
        """Tell it how the last observation's images were shown. Raises as `reset` does."""
        ...

    async def snapshot(self) -> bytes:
        """Its state, pickled where it lives. Raises as `reset` does."""
        ...

    async def restore(self, state: bytes) -> None:
        """Go on from a snapshot of an environment of this spec, after `reset`. Raises as `reset` does."""
        ...

    async def close(self) -> None:
        """Give the slot back, whatever happened; safe to call twice, and during a cancellation."""
        ...


class Home(Protocol):
    """Where an environment runs: `EnvInLoop`, `EnvInThread` or `EnvProcess`."""

    traits: Traits

    async def perform(self, method: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        """Call a method; raises EnvFailure and ConfigError."""
        ...

    async def leave(self, healthy: bool) -> None:
        """End an episode; one that is not healthy failed, or was left during a call."""
        ...

    def end(self) -> None:
        """Stop at once; pending calls fail."""
        ...


class EnvHost:
    """Opens environments: one object a run. Nothing is started before there is work.

    Attributes:
        num_slots: environments that can be open at once.
    """

    def __init__(self, config: EnvConfig, *, max_open: int, around: AroundFn | None = None) -> None:
        """Say where environments run.

        Args:
            config: where, and the limits.
            max_open: most environments at once; of processes it may be fewer, by `config.num_processes`.
            around: a context for each call of an environment, made with the method's name.
        """
        slots = max_open
        if config.isolation == "process" and config.num_processes is not None:
            slots = min(max_open, config.num_processes)
        self.num_slots = slots
        self._config, self._around = config, around or (lambda method: nullcontext())
        self._slots = Slots(slots)
        self._pool, self._threads = EnvPool(slots, config.memory_gib), EnvThreads(slots)
        self._homes: dict[_SlottedEnv, Home] = {}
        self._closed = False

    def __enter__(self) -> Self:
        """Nothing yet."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()

    async def open(self, spec: EnvTask) -> HostedEnv:
        """Make an environment, or take one that is warm; waits for a free slot.

        Raises:
            EnvFailure: if its constructor raises, hangs or kills its process.
            ConfigError: for an unknown name or wrong options.
            ResourceError: if no process can be started.
        """
        await self._slots.take()
        try:
            if self._closed:
                raise InternalError("an environment was opened after its host had been closed")
            home = await self._settle(spec)
        except BaseException as error:
            self._slots.give_back()
            if isinstance(error, EnvFailure):
                raise _located(error, spec, "when it was made", "env.reset_timeout_s") from None
            raise
        env = _SlottedEnv(spec, home, self._config, self._leave, self._around)
        self._homes[env] = home
        return env

    def close(self) -> None:
        """End every environment, process and waiting `open`; safe to call twice."""
        self._closed = True
        self._slots.fail(InternalError("the host of the environments was closed while one was waited for"))
        for home in self._homes.values():
            home.end()
        self._pool.close()
        self._threads.close()

    async def _settle(self, spec: EnvTask) -> Home:
        limit_s = self._config.reset_timeout_s
        if self._config.isolation == "process":
            return await self._pool.take(spec, limit_s)
        if self._config.isolation == "thread" and (in_thread := await self._threads.take(spec, limit_s)):
            return in_thread
        in_loop = EnvInLoop(spec)
        in_loop.open()
        return in_loop

    def _leave(self, env: _SlottedEnv) -> None:
        del self._homes[env]
        self._slots.give_back()


class _SlottedEnv:
    """A hosted environment: what belongs to its slot, and whose turn it is."""

    def __init__(
        self,
        spec: EnvTask,
        home: Home,
        config: EnvConfig,
        give_back: Callable[[_SlottedEnv], None],
        around: AroundFn,
    ) -> None:
        self.system_prompt, self.tools, self.system_prompts, *flags = home.traits
        self.sees, self.snapshots, self._ends_episodes = flags
        self._spec, self._home, self._config, self._give_back = spec, home, config, give_back
        self._healthy, self._closed, self._num_steps, self._around = True, False, 0, around

    async def reset(self) -> Any:
        """See `HostedEnv`."""
        self._num_steps = 0
        return await self._call("reset", (dict(self._spec.task), self._spec.seed))

    async def step(self, action: Any) -> Any:
        """See `HostedEnv`."""
        self._num_steps += 1
        return await self._call("step", (action,))

    async def seen(self, canvases: Sequence[Canvas]) -> None:
        """See `HostedEnv`."""
        await self._call("seen", (tuple(canvases),))

    async def snapshot(self) -> bytes:
        """See `HostedEnv`."""
        return bytes(await self._call("snapshot", ()))

    async def restore(self, state: bytes) -> None:
        """See `HostedEnv`."""
        await self._call("restore", (state,))

    async def close(self) -> None:
        """See `HostedEnv`."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._end_episode()
        finally:
            try:
                await self._home.leave(self._healthy)
            except EnvFailure as failure:
                self._warn(failure, "in close")
            finally:
                self._give_back(self)

    async def _end_episode(self) -> None:
        """Have it give back what it holds for this episode alone."""
        if not (self._ends_episodes and self._healthy):
            return
        self._healthy = False
        try:
            await self._home.perform("end_episode", (), CLOSE_LIMIT_S)
            self._healthy = True
        except EnvFailure as failure:
            self._warn(failure, "in end_episode")

    def _warn(self, failure: EnvFailure, where: str) -> None:
        """Tell what failed in an episode that is over: its result stands."""
        warnings.warn(str(_located(failure, self._spec, where)), stacklevel=2)

    async def _call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        if self._closed or not self._healthy:
            raise InternalError(f"env {self._spec.name!r}: {method} after it failed or was closed")
        limit, limit_s = "step_timeout_s", self._config.step_timeout_s
        if method == "reset":
            limit, limit_s = "reset_timeout_s", self._config.reset_timeout_s
        self._healthy = False  # until it has answered: who is cancelled here, or fails, leaves it unfit
        try:
            with self._around(method):
                value = await self._home.perform(method, arguments, limit_s)
        except EnvFailure as failure:
            where = f"in step {self._num_steps}" if method == "step" else f"in {method}"
            raise _located(failure, self._spec, where, f"env.{limit}") from None
        self._healthy = True
        return value


def _located(failure: EnvFailure, spec: EnvTask, where: str, limit: str = "") -> EnvFailure:
    remedy = f" ({limit})" if limit and failure.kind == "hung" else ""
    reason = f"env {spec.name!r}, seed {spec.seed}, {where}: {failure.reason}{remedy}"
    return EnvFailure(failure.kind, reason, failure.trace)
