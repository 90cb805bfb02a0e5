"""Notices that nothing happens in a run, and says who waits for whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from vlrl.run.monitoring.waits import Waits, words

TellFn = Callable[[str, str], None]
MAX_FILES = 20
"""Files of stacks that a run keeps, the newest."""


class WatchedProcess(Protocol):
    """A process of the run: `vlrl.cluster.Process`, or `vlrl.foreign.worker_process.WorkerProcess`."""

    def __str__(self) -> str: ...

    def stacks(self) -> str:
        """What it is doing, in words, and then its stacks, if it answers."""
        ...


class SilenceWatch:
    """Tells of a silence once, with the stacks of all processes in a file, and of its end."""

    def __init__(
        self,
        silence_s: float,
        run_dir: Path,
        waits: Waits,
        processes: Callable[[], Sequence[WatchedProcess]],
        starting: Callable[[], Sequence[str]],
        progress: Callable[[], Hashable],
        tell: TellFn,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to watch.

        Args:
            silence_s: seconds without progress that are told.
            run_dir: the run's folder.
            waits: of the driver.
            processes: of ranks, engines and workers, and of environments and rewards that are waited for.
            starting: names of those of them that have not started yet.
            progress: changes whenever something has been done that no stack shows.
            tell: called with an event's name and a sentence.
            clock: seconds; for tests.
        """
        self._silence_s, self._run_dir, self._tell, self._clock = silence_s, run_dir, tell, clock
        self._waits, self._processes, self._starting = waits, processes, starting
        self._progress = progress
        self._last: Hashable = None
        self._since, self._is_told = clock(), False

    def look(self) -> None:
        """Compare with the look before; to be called every few seconds."""
        now, waits = self._clock(), self._waits.look()
        # Somebody who waits since another time has gone on, or come, or gone.
        seen = (self._progress(), frozenset((w.who, w.place, w.since) for w in waits))
        if seen != self._last:
            if self._is_told:
                self._tell("silence_over", f"the run goes on, after {now - self._since:.0f} s")
            self._last, self._since, self._is_told = seen, now, False
        elif not self._is_told and now - self._since >= self._silence_s:
            self._is_told = True
            self._report(now - self._since, words(waits, now))

    def _report(self, seconds: float, who_waits: str) -> None:
        asked = [(str(process), process.stacks()) for process in self._processes()]
        found = [f"{name}: {stacks.partition(':' + chr(10))[0]}" for name, stacks in asked]
        found += [f"{name}: has not started yet" for name in self._starting()]
        text = "\n".join([f"nothing has happened for {seconds:.0f} s (logging.silence_s)", who_waits, *found])
        file = self._keep(text, asked)
        self._tell("silence", f"{text}\nstacks of the processes: {file}")

    def _keep(self, text: str, asked: Sequence[tuple[str, str]]) -> Path:
        folder = self._run_dir / "stacks"
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("*.txt"))[: -MAX_FILES + 1]:
            old.unlink()
        file = folder / f"{datetime.now():%Y%m%d_%H%M%S}.txt"
        parts = [text, *(f"=== {name}: {stacks}" for name, stacks in asked)]
        file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        return file
