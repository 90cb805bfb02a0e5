"""Private memory of a side's processes, sampled while a block runs that is not timed.

Resident memory counts pages that processes share in each of them. /proc/PID/smaps_rollup tells them apart:
`private` (USS) is what a process's end would free, `proportional` (PSS) adds its share of what it shares, and
`anonymous` is what no file backs, so that libraries count on neither side, whoever else has them loaded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

INTERVAL = 0.1
"""Seconds between samples: reading takes the kernel 10 ms and more for each gigabyte."""
FIELDS = ("private", "proportional", "anonymous")


def parse_rollup(text: str) -> dict[str, int]:
    """Bytes by name of FIELDS in the text of /proc/PID/smaps_rollup; all 0 for a process that ended."""
    kib = {
        name: int(value.split()[0])
        for name, value in (line.split(":", 1) for line in text.splitlines() if line.endswith(" kB"))
    }
    private = kib.get("Private_Clean", 0) + kib.get("Private_Dirty", 0) + kib.get("Private_Hugetlb", 0)
    found = {
        "private": private,
        "proportional": kib.get("Pss", 0),
        "anonymous": kib.get("Anonymous", 0),
    }
    return {name: size * 1024 for name, size in found.items()}


@dataclass
class MemoryPeaks:
    """The most that was seen.

    Attributes:
        total: bytes by name of FIELDS, of all processes at one moment.
        processes: the same of each process, at its own moment.
        samples: that were taken.
        cpu_seconds: that a sample took.
    """

    total: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FIELDS, 0))
    processes: dict[int, dict[str, int]] = field(default_factory=dict)
    samples: int = 0
    cpu_seconds: float = 0.0

    def add(self, now: dict[int, dict[str, int]], cpu_seconds: float) -> None:
        """Take one sample of all processes in."""
        for name in FIELDS:
            self.total[name] = max(self.total[name], sum(one[name] for one in now.values()))
        for pid, one in now.items():
            most = self.processes.setdefault(pid, dict.fromkeys(FIELDS, 0))
            self.processes[pid] = {name: max(most[name], one[name]) for name in FIELDS}
        self.samples += 1
        self.cpu_seconds += (cpu_seconds - self.cpu_seconds) / self.samples

    def as_dict(self, trainer: int) -> dict[str, Any]:
        """What is printed; `trainer` is the process that trains.

        Keys end in _bytes: of all processes together, of the trainer, and of the largest of each field.
        """
        alone = self.processes.get(trainer, dict.fromkeys(FIELDS, 0))
        return {
            **{f"{name}_bytes": self.total[name] for name in FIELDS},
            **{f"trainer_{name}_bytes": alone[name] for name in FIELDS},
            "memory_samples": self.samples,
            "memory_sample_cpu_seconds": self.cpu_seconds,
        }


def sample_during(
    work: Callable[[], Any], family: Callable[[], Iterable[int]], interval: float = INTERVAL
) -> MemoryPeaks:
    """Do `work`, which waits for other processes, and look at the memory of `family` meanwhile."""
    peaks, ended = MemoryPeaks(), threading.Event()

    def look() -> None:
        pids: list[int] = []
        while True:
            begin = time.thread_time()
            if peaks.samples % 10 == 0:  # processes come and go rarely, and finding them reads all of /proc
                pids = list(family())
            peaks.add({pid: parse_rollup(_rollup(pid)) for pid in pids}, time.thread_time() - begin)
            if ended.wait(interval):
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        work()
    finally:
        ended.set()
        thread.join()
    return peaks


class Guard:
    """Ends processes that use more memory, or take longer, than they may; `reason` then says which.

    Resident pages are counted, of all processes together: that is cheap, and is what a machine runs out of.
    """

    def __init__(self, family: Callable[[], Iterable[int]], most_bytes: float, most_seconds: float) -> None:
        self.reason = ""
        self._family, self._most_bytes, self._most_seconds = family, most_bytes, most_seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        end = time.monotonic() + self._most_seconds
        pids = list(self._family())
        while not self._done.wait(INTERVAL):
            if sum(map(_resident, pids)) > self._most_bytes:
                self.reason = f"over {self._most_bytes / 2**30:.3g} GiB"
            elif time.monotonic() > end:
                self.reason = f"over {self._most_seconds:.0f} s"
            else:
                continue
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return


def _resident(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):  # it ended meanwhile
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _rollup(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it ended meanwhile
        return ""


def ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """Ours to theirs, of all processes and of the trainers alone, by key of a result."""
    return {
        f"{prefix}{name}_memory_ratio": ours[f"{prefix}{name}_bytes"] / theirs[f"{prefix}{name}_bytes"]
        for prefix in ("", "trainer_")
        for name in FIELDS
        if theirs.get(f"{prefix}{name}_bytes")
    }
