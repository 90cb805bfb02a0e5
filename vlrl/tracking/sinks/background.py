"""A sink in a thread of its own: it may raise or hang, and the run goes on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from vlrl.tracking.sinks.sink import Sink

MAX_WAITING = 1000
"""Entries that wait for a sink; then the oldest are dropped. A step has one or two."""

TellFn = Callable[[str, str], None]
"""(name of an event, sentence)."""
Entry = Callable[[Sink], None]


class BackgroundSink:
    """Hands a sink its entries, in order, and leaves it alone once it has failed.

    Consumes: entries of `put`. Waits for: the sink. Unblocked by: its return; nobody else waits for that,
    except `join` for as long as it is told to.
    """

    def __init__(self, sink: Sink, tell: TellFn, *, max_waiting: int = MAX_WAITING) -> None:
        """Open the sink in the thread.

        Args:
            sink: used by that thread alone from now on.
            tell: reports the first failure, and entries that were dropped.
            max_waiting: entries.
        """
        self._sink, self._tell = sink, tell
        self._waiting: deque[Entry] = deque(maxlen=max_waiting)
        self._changed = threading.Condition()
        self._ending = self._has_failed = False
        self._num_dropped = 0
        self._thread = threading.Thread(target=self._run, name=f"sink {sink.name}", daemon=True)
        self._thread.start()

    def put(self, entry: Entry) -> None:
        """Have an entry taken; never blocks. One after the sink's end is left out."""
        with self._changed:
            if self._has_failed or self._ending:
                return
            is_first = len(self._waiting) == self._waiting.maxlen and not self._num_dropped
            self._num_dropped += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(entry)
            self._changed.notify()
        if is_first:
            self._tell("sink_slow", f"{self._sink.name} is too slow: its oldest numbers are left out{_REST}")

    def end(self) -> None:
        """No entry comes any more: the sink closes after those that wait."""
        with self._changed:
            self._ending = True
            self._changed.notify()

    def join(self, until: float) -> None:
        """Wait for the sink's end until a time of time.monotonic; one that is late is left behind."""
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            with self._changed:
                missing = len(self._waiting)
                self._has_failed = True  # so that it takes nothing more when it wakes up
                self._waiting.clear()
            self._tell("sink_hangs", f"{self._sink.name} did not end in time, {missing} entries wait{_REST}")
        elif self._num_dropped:
            self._tell("sink_slow", f"{self._sink.name} was too slow for {self._num_dropped} entries{_REST}")

    def _run(self) -> None:
        try:
            self._sink.open()
            while (entry := self._next()) is not None:
                entry(self._sink)
            self._sink.close()
        except (
            BaseException
        ) as error:  # of any kind, SystemExit too: what a library does must not reach the run
            with self._changed:
                told, self._has_failed = self._has_failed, True
                self._waiting.clear()
            if not told:
                text = f"{type(error).__name__}: {error}"
                self._tell("sink_failed", f"{self._sink.name} takes no more numbers: {text}{_REST}")

    def _next(self) -> Entry | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ending)
            return self._waiting.popleft() if self._waiting else None


_REST = "; metrics.jsonl has all of them"
