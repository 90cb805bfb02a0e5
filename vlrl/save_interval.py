"""When a checkpoint is due: by steps, and by the time since the last one."""

from __future__ import annotations

import time
from collections.abc import Callable

from vlrl.options import CheckpointConfig


class SaveInterval:
    """Asked after every step; whichever comes first is enough."""

    def __init__(self, config: CheckpointConfig, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Time is counted from here; `clock` gives seconds."""
        self._every, self._clock = config.every, clock
        self._limit_s = None if config.every_minutes is None else 60.0 * config.every_minutes
        self._saved_at = clock()

    def is_due(self, step: int) -> bool:
        """Whether one is due after step number `step`, counted from 0."""
        if self._every and (step + 1) % self._every == 0:
            return True
        return self._limit_s is not None and self._clock() - self._saved_at >= self._limit_s

    def saved(self) -> None:
        """One was written: its time is counted from its end."""
        self._saved_at = self._clock()
