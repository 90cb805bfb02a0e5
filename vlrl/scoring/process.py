"""A worker of the pool as the driver sees it."""

from __future__ import annotations

import mmap
import os
import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from vlrl.foreign.worker_process import WorkerProcess
from vlrl.scoring.functions import RewardSource
from vlrl.scoring.worker import PROGRESS, STARTING


@dataclass(frozen=True, slots=True)
class Watch:
    """Workers that also record what a reward does beside scoring.

    Attributes:
        module: is run in the place of `vlrl.scoring.worker`, whose `serve` it calls.
        arguments: of its own.
        environment: of its processes, see `WorkerProcess`.
    """

    module: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class RewardProcess(WorkerProcess):
    """One worker: it is given the rewards, then chunks of calls, and its progress can be seen."""

    def __init__(self, sources: list[RewardSource], memory_bytes: int, watch: Watch | None = None) -> None:
        page = os.memfd_create("vlrl-reward")
        os.ftruncate(page, PROGRESS.size)
        self._page = mmap.mmap(page, PROGRESS.size)
        PROGRESS.pack_into(self._page, 0, STARTING, time.monotonic())
        module = watch.module if watch else "vlrl.scoring.worker"
        super().__init__(
            module,
            [page, *(watch.arguments if watch else ())],
            role="process of rewards",
            memory_bytes=memory_bytes,
            files=[page],
            environment=watch.environment if watch else None,
        )
        os.close(page)
        self._first = [pickle.dumps(sources, pickle.HIGHEST_PROTOCOL)]

    def present_call(self) -> tuple[int, float]:
        """(index of the call in its chunk; -1, LEAVING or STARTING outside calls; since when)."""
        index, begin = PROGRESS.unpack_from(self._page)
        return index, begin

    async def send(self, *payloads: bytes) -> bool:
        """Send a chunk; False if the process has ended."""
        PROGRESS.pack_into(self._page, 0, STARTING if self._first else -1, time.monotonic())
        first, self._first = self._first, []
        return await super().send(*first, *payloads)
