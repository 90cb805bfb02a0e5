"""One rollout worker as the driver sees it: an actor that is replaced when it dies."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from vlrl import cluster
from vlrl.errors import EngineDied, EngineError

CLOSE_TIMEOUT_S = 10.0
"""Seconds in which a worker closes its environments and rewards; then it is killed, and they with it."""


class WorkerHandle:
    """A worker's actor, and what starts another in its place.

    Attributes:
        actor: the worker's.
        counts: `replaced_workers`.
    """

    def __init__(
        self,
        spawn: Callable[[], Any],
        place: cluster.Place,
        *,
        name: str,
        max_restarts: int,
        timeout_s: float,
    ) -> None:
        """Start the first actor; `spawn` starts one and does not wait for it.

        Args:
            spawn: starts an actor.
            place: where it starts it.
            name: for messages.
            max_restarts: actors that may be replaced.
            timeout_s: in which one must have started.
        """
        self._spawn, self._place, self._name = spawn, place, name
        self._max_restarts, self._timeout_s = max_restarts, timeout_s
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.actor = spawn()
        self._starting = self.actor.start.remote()

    def wait_ready(self) -> float:
        """Block until the worker has started; seconds it took."""
        return float(cluster.fetch(self._starting))

    def replace(self, dead: Any, reason: EngineDied) -> None:
        """Start another worker in place of a dead one; only the first who has noticed does.

        Raises:
            EngineError: if rollout.max_worker_restarts were replaced before, or this one does not start.
            NodeLost: if the worker's machine has left the cluster.
        """
        with self._lock:
            if self.actor != dead:
                return
            if self.counts["replaced_workers"] >= self._max_restarts:
                raise EngineError(
                    f"{self._name} was replaced rollout.max_worker_restarts={self._max_restarts} times and "
                    f"has died again: {reason}"
                )
            self.counts["replaced_workers"] += 1
            cluster.stop([dead])
            coming = self._spawn()
            late = f"{self._name} has died and none took its place within ray.start_timeout_s: {reason}"
            cluster.fetch_from(self._place, coming.start.remote(), timeout_s=self._timeout_s, late=late)
            self.actor = coming

    async def close(self) -> None:
        """Let the worker close what it has opened, then stop it."""
        with suppress(EngineError, TimeoutError):  # dead, or busy: what it has opened dies with it
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await cluster.fetch_async(self.actor.close.remote())
        cluster.stop([self.actor])
