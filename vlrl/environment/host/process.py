"""An environment in a process of its own, as the driver sees it."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

from vlrl.environment.host.answers import Traits
from vlrl.environment.host.calls import result
from vlrl.environment.host.failure import HOST_CLOSED, EnvFailure, FailureKind
from vlrl.environment.host.frames import loads
from vlrl.environment.host.key import key_of
from vlrl.errors import ConfigError, ResourceError
from vlrl.foreign.worker_process import WorkerProcess
from vlrl.types import EnvTask

START_LIMIT_S = 300.0
"""A process that takes longer until it runs Python is given up, and with it the run."""


class EnvProcess:
    """One environment, which serves episode after episode.

    Attributes:
        key: of all specs that it can serve.
        worker: its process.
        idle: it is not at a call, and so can be asked to end by itself.
    """

    traits = Traits("", (), {})

    def __init__(
        self, spec: EnvTask, memory_gib: float, give_back: Callable[[EnvProcess, bool], None]
    ) -> None:
        """Start the process.

        Args:
            spec: its name and options.
            memory_gib: data that it may have.
            give_back: what is done with it when an episode ends, well or not.
        """
        self.key = key_of(spec)
        self._spec, self._memory_gib, self._give_back = spec, memory_gib, give_back
        self.idle = self._stopped = False
        self.worker = WorkerProcess(
            "vlrl.environment.host.worker",
            role=f"process of env {spec.name!r}",
            memory_bytes=int(memory_gib * (1 << 30)),
        )

    async def open(self, limit_s: float) -> None:
        """Have the environment made.

        Raises:
            EnvFailure, ConfigError: of its constructor.
            ResourceError: if the process does not even start.
        """
        if await self._answer(START_LIMIT_S) is None:
            raise ResourceError(
                f"the process for env {self._spec.name!r} did not start: {self.worker.death_message()}; is "
                f"env.memory_gib={self._memory_gib:g} enough, or env.num_processes too many for this machine?"
            )
        self.traits = await self.perform("open", (self._spec.name, dict(self._spec.options)), limit_s)

    async def perform(self, method: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        """Call a method.

        Raises:
            EnvFailure: of the method, or as the process hung or died.
            ConfigError: of the method, or for arguments that cannot be sent.
        """
        try:
            request = pickle.dumps((method, arguments), pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # of a stranger's classes
            raise self._unsendable(error) from error
        answer = await self._answer(limit_s, request)
        if answer is None:
            kind: FailureKind = "died" if self.worker.overdue_s is None else "hung"
            raise EnvFailure(kind, HOST_CLOSED if self._stopped else self.worker.death_message())
        try:
            return result(loads(answer))
        except EnvFailure as failure:
            if "MemoryError" in failure.reason:
                failure.reason += f" (its process may have env.memory_gib={self._memory_gib:g})"
            raise

    async def _answer(self, limit_s: float, *requests: bytes) -> bytearray | None:
        """What it answers; None if it is dead, or killed as it took too long."""
        self.idle = False
        watch = _Watch(self.worker, limit_s)
        try:
            answer = await self.worker.receive() if await self.worker.send(*requests) else None
            self.idle = answer is not None
            return answer
        finally:
            watch.stop()

    async def leave(self, healthy: bool) -> None:
        """End an episode."""
        self._give_back(self, healthy)

    def end(self) -> None:
        """Kill it during an episode."""
        self._stopped = True
        self.worker.end()

    def _unsendable(self, error: Exception) -> ConfigError:
        return ConfigError(
            f"env {self._spec.name!r}: its options or its task cannot be sent to a process ({error}); "
            "give plain values, or set env.isolation=thread"
        )


class _Watch:
    """Kills a worker that does not answer in time."""

    def __init__(self, worker: WorkerProcess, limit_s: float) -> None:
        self._worker, self._limit_s = worker, limit_s
        self._seen = worker.num_received
        self._timer = asyncio.get_running_loop().call_later(limit_s, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        # If this event loop was itself busy for so long, the answer may be waiting.
        if self._worker.is_answering or self._worker.num_received > self._seen:
            self._seen = self._worker.num_received
            self._timer = asyncio.get_running_loop().call_later(self._limit_s, self._look)
            return
        if self._worker.alive:
            self._worker.overdue_s = self._limit_s
        self._worker.end()
