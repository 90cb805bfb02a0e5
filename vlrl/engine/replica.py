"""One engine as its owner sees it: an actor that is replaced when it dies, always at the right version."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from vlrl import cluster
from vlrl.choices import MachineChoice
from vlrl.engine.client.link import EngineLink
from vlrl.errors import EngineDied, EngineError
from vlrl.weights.manifest import Manifest


class Replica(EngineLink):
    """An engine's actor and what has to be known to start another in its place.

    Attributes:
        actor: the engine's, or of one that died until another can take its place.
        counts: `replaced_engines`, `resubmitted_requests`.
    """

    def __init__(
        self, spawn: Callable[[], Any], place: cluster.Place, *, max_restarts: int, timeout_s: float
    ) -> None:
        """Start the first actor's process; `spawn` starts one at the place and does not wait for it."""
        self._spawn, self._place = spawn, place
        self._max_restarts, self._timeout_s = max_restarts, timeout_s
        self._lock = threading.Lock()
        self._weights: tuple[Manifest, int] | None = None
        self._closed = False
        self._coming: Any = None
        self.counts: Counter[str] = Counter()
        super().__init__(self._spawn())
        self._starting: Any = None

    def start(self) -> None:
        """Have the engine load the model in the background, if nobody has yet."""
        if self._starting is None:
            self._starting = self.actor.start.remote()

    def wait_ready(self) -> float:
        """Block until the engine has started; seconds it took. One that dies meanwhile is replaced."""
        self.start()
        actor, begin = self.actor, time.perf_counter()
        try:
            return float(cluster.fetch(self._starting))
        except EngineDied as error:
            self.replace(actor, error)
            return time.perf_counter() - begin

    def choices(self) -> list[MachineChoice]:
        """What the engine chose for its machine; one that dies meanwhile is replaced, and asked instead."""
        while True:
            actor = self.actor
            try:
                chosen: list[MachineChoice] = cluster.fetch(actor.choices.remote())
                return chosen
            except EngineDied as error:
                self.replace(actor, error)

    def send_weights(self, manifest: Manifest, version: int) -> Callable[[], float]:
        """Begin an update.

        Returns:
            A function that blocks until it is done and gives the seconds for which the engine generated
            nothing. It replaces an engine that died meanwhile, and raises EngineError after
            weights.timeout_s.
        """
        with self._lock:
            self._weights, actor = (manifest, version), self.actor
        sent = actor.update.remote(manifest, version)

        def wait() -> float:
            try:
                return self._fetch(sent, version)
            except EngineDied as error:
                self.replace(actor, error)
                return 0.0

        return wait

    async def renew(self, dead: Any, reason: EngineDied, num_lost: int) -> None:
        """`replace`, while the event loop goes on."""
        self.counts["resubmitted_requests"] += num_lost
        await asyncio.to_thread(self.replace, dead, reason)

    def abort(self, name: str) -> None:
        """Abort a request whose result is no longer awaited."""
        if not self._closed:  # the event loop, which cancels what waits, may end after the engines
            super().abort(name)

    def replace(self, dead: Any, reason: EngineDied) -> None:
        """Start another engine in place of a dead one and give it the present weights.

        Raises:
            EngineError: if generator.max_restarts engines were replaced before.
            NodeLost: if the engine's machine has left the cluster.
        """
        with self._lock:
            if self.actor != dead:  # somebody else has noticed first
                return
            cluster.stop([dead])
            while self.actor == dead:
                self._count(reason)
                try:
                    self.actor = self._successor(reason)
                except EngineDied as error:
                    reason = error

    def close(self) -> None:
        """Stop the engine's process, also one that is about to take a dead one's place."""
        self._closed = True
        cluster.stop([actor for actor in (self.actor, self._coming) if actor is not None])

    def _count(self, reason: EngineDied) -> None:
        if self._closed:
            raise EngineError(f"the engine was closed while another took its place: {reason}")
        if self.counts["replaced_engines"] >= self._max_restarts:
            raise EngineError(
                f"generator.max_restarts={self._max_restarts} engines were replaced, and one more has died: "
                f"{reason}"
            )
        self.counts["replaced_engines"] += 1

    def _successor(self, reason: EngineDied) -> Any:
        """An engine with the weights that the dead one had; until it has them nobody else knows of it."""
        self._coming = self._spawn()
        cluster.fetch_from(self._place, self._coming.start.remote())
        if self._weights is not None:
            if self._weights[0].transport == "broadcast":
                raise EngineError(
                    "broadcast weights are not stored, so the dead engine cannot be replaced: "
                    "continue with --resume, or set weights.transport to shared_memory or disk; "
                    f"{reason}"
                )
            self._fetch(self._coming.update.remote(*self._weights), self._weights[1])
        return self._coming

    def _fetch(self, update: Any, version: int) -> float:
        late = (
            f"an engine has not loaded version {version} after weights.timeout_s={self._timeout_s:g}; raise "
            "it for a large model on slow storage, else the transfer hangs: the actors' logs are under "
            f"{cluster.logs_folder()}"
        )
        return float(cluster.fetch(update, timeout_s=self._timeout_s, late=late))
