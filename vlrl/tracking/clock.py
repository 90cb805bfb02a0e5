"""Where a step's time went."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from vlrl.tracking.metrics import TIME_PARTS
from vlrl.tracking.timeline import RecordFn


class Clock:
    """Seconds by name, for one step or a whole run."""

    def __init__(self, record: RecordFn | None = None) -> None:
        """Every measured block is also handed to `record`."""
        self._record = record
        self.seconds: dict[str, float] = defaultdict(float)
        self._begin = time.perf_counter()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the block's wall time to `name`."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            self.seconds[name] += end - begin
            if self._record is not None:
                self._record(name, begin, end)

    def split(self, name: str, parts: Mapping[str, float]) -> None:
        """Move seconds of the time measured as `name` to the other parts that took them."""
        for part, seconds in parts.items():
            self.seconds[name] -= seconds
            self.seconds[part] += seconds

    @property
    def total(self) -> float:
        """Seconds since the clock was made."""
        return time.perf_counter() - self._begin

    def metrics(self, num_tokens: int) -> dict[str, float]:
        """The split of a step's time, and its throughput over num_tokens generated tokens."""
        total = self.total
        parts = {f"time_s/{name}": self.seconds[name] for name in TIME_PARTS}
        parts["time_s/wait"] += total - sum(parts.values())
        return {"throughput/tokens_per_s": num_tokens / total, **parts, "time_s/step": total}
