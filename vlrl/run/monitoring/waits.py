"""Who waits for whom in the driver's process, and since when, as its stacks show."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

AWAITED = {
    "vlrl/trainer/": "the ranks",
    "vlrl/run/players/workers": "the rollout workers",
    "vlrl/run/players/handle": "the rollout workers",
    "vlrl/engine/": "the engines",
    "vlrl/environment/": "an environment",
    "vlrl/envs/": "an environment",
    "vlrl/scoring/": "a reward",
    "vlrl/rewards/": "a reward",
    "vlrl/run/checkpoint": "a disk",
    "vlrl/run/saving": "a disk",
    "vlrl/storage/": "a disk",
}
"""Whom a function waits for, by where it is written."""

Place = tuple[str, int]
"""A file of vlrl's and a line; of the innermost function that waits."""


@dataclass(frozen=True, slots=True)
class DriverWait:
    """One that waits.

    Attributes:
        who: the driver, or a task of its event loop, which is an episode or part of one.
        whom: in words; "" if that is not known.
        place: of the code that waits.
        since: by time.monotonic, of the look that found it there first.
    """

    who: str
    whom: str
    place: Place
    since: float


class Waits:
    """Looks at the stacks from another thread, and remembers since when each has been where it is."""

    def __init__(
        self,
        thread: int,
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Look at nothing yet.

        Args:
            thread: the driver's, by threading.get_ident.
            loop: whose tasks play episodes.
            clock: seconds; for tests.
        """
        self._thread, self._loop, self._clock = thread, loop, clock
        self._since: dict[tuple[Any, ...], float] = {}

    def look(self) -> list[DriverWait]:
        """Those that wait now, the longest first."""
        now, since, found = self._clock(), dict[tuple[Any, ...], float](), []
        for key, who, frames in self._stacks():
            places = [place for place in map(_place, frames) if place is not None]
            if not places:
                continue
            at = (key, *((frame.f_code, frame.f_lasti) for frame in frames))
            since[at] = self._since.get(at, now)
            found.append(DriverWait(who, _whom(places), places[0], since[at]))
        self._since = since
        return sorted(found, key=lambda wait: wait.since)

    def _stacks(self) -> Iterator[tuple[Any, str, list[FrameType]]]:
        """(identity, name, frames from the innermost out) of the driver's thread and of each task."""
        frame, frames = sys._current_frames().get(self._thread), list[FrameType]()
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        yield "driver", "the driver", frames
        for task in _tasks(self._loop):
            yield id(task), "a task", _awaiting(task)


def words(waits: list[DriverWait], now: float) -> str:
    """The waits as lines: alike ones together, with the longest."""
    alike: dict[tuple[str, str, Place], list[DriverWait]] = defaultdict(list)
    for wait in waits:
        alike[wait.who, wait.whom, wait.place].append(wait)
    lines = []
    for (who, whom, (file, line)), of in alike.items():
        names = who if who != "a task" else f"{len(of)} tasks of the driver" if len(of) > 1 else "a task"
        verb = "wait" if len(of) > 1 else "waits"
        target = f" for {whom}" if whom else ""
        lines.append(f"{names} {verb}{target}, since {now - of[0].since:.0f} s ({file}:{line})")
    return "\n".join(lines)


def _tasks(loop: asyncio.AbstractEventLoop | None) -> list[asyncio.Task[Any]]:
    if loop is None or loop.is_closed():
        return []
    try:
        return list(asyncio.all_tasks(loop))
    except RuntimeError:  # they changed meanwhile, several times over: the next look finds them
        return []


def _awaiting(task: asyncio.Task[Any]) -> list[FrameType]:
    """The frames of a task from the innermost coroutine that vlrl's code awaits, out."""
    frames = list[FrameType]()
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            frames.append(frame)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return frames[::-1]


def _place(frame: FrameType) -> Place | None:
    file = _vlrl_file(frame.f_code)
    return None if file is None else (file, frame.f_lineno)


def _vlrl_file(code: CodeType) -> str | None:
    _, found, rest = code.co_filename.rpartition("/vlrl/")
    return f"vlrl/{rest}" if found else None


def _whom(places: list[Place]) -> str:
    """Whom the innermost function that says so waits for."""
    for file, _ in places:
        for start, whom in AWAITED.items():
            if file.startswith(start):
                return whom
    return ""
