"""A thread that finishes checkpoints while the run goes on: digests, and the upload to a bucket."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from vlrl.run.checkpoint import TellFn
from vlrl.storage.stopping import StopFn, Stopped

TaskFn = Callable[[Path, StopFn], None]
"""Done for a checkpoint's folder; raises Stopped soon after it is asked to stop."""

NICENESS = 10
"""Of the thread: on a machine without GPUs the steps need the same cores."""

WAKE_S = 0.5
"""Signals are handled between two waits."""

STOP_S = 60.0
"""Longest wait for a task that was asked to stop: it may be in the middle of a request."""


class Completion:
    """Tasks for one checkpoint after the other, oldest first; one that fails does not end the run."""

    def __init__(self, tasks: Sequence[TaskFn], tell: TellFn) -> None:
        """Wait for a checkpoint.

        Args:
            tasks: done in this order for each.
            tell: called with an event's name and a sentence when a task has failed.
        """
        self._tasks, self._tell = tasks, tell
        self._waiting: deque[Path] = deque()
        self._current: Path | None = None
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def in_use(self) -> tuple[Path, ...]:
        """The checkpoint that is read now, if any."""
        current = self._current
        return (current,) if current is not None else ()

    def begin(self, folder: Path) -> None:
        """Have a checkpoint that is whole completed, after those before it."""
        with self._changed:
            self._waiting.append(folder)
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)
            self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether something that was begun is neither done nor has failed."""
        return bool(self._waiting) or self._current is not None

    def finish(self) -> None:
        """Block until everything that was begun is done or has failed."""
        with self._changed:
            while self.is_busy:
                self._changed.wait(WAKE_S)

    def close(self) -> None:
        """Give up what is not done; what a task leaves is what a kill would leave."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(STOP_S)

    def _work(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while (folder := self._next()) is not None:
            self._complete(folder)

    def _next(self) -> Path | None:
        """The next checkpoint, once there is one; None after `close`."""
        with self._changed:
            self._current = None
            self._changed.notify_all()
            while not self._waiting and not self._stopped.is_set():
                self._changed.wait()
            if not self._stopped.is_set():
                self._current = self._waiting.popleft()
            return self._current

    def _complete(self, folder: Path) -> None:
        for task in self._tasks:
            try:
                task(folder, self._stopped.is_set)
            except Stopped:
                return
            except Exception as error:  # of any class: the run has what it needs, and goes on
                if folder.is_dir():  # else it was pruned meanwhile
                    text = f"{folder}: {error}; the run goes on, and tries again with the next checkpoint"
                    self._tell("checkpoint_not_completed", text)
                return
