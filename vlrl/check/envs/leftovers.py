"""What an environment leaves behind when it is closed: threads, open files, processes."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

from vlrl.check.envs.episodes import Request, Watched, play, usual_policy
from vlrl.check.envs.verdict import EnvCheck

TITLE = "leaves nothing behind"
CYCLES = 4
"""Environments made and closed; what all of them leave is no cache."""
Held = dict[str, set[str]]
"""Numbers of this process's threads, open files and processes, by kind."""
PATIENCE_S = 2.0
"""Time that threads and processes are given to end."""


def leaves_nothing(env: Watched, request: Request) -> EnvCheck:
    """Make, play and close it a few times, and count what stays."""
    if not Path("/proc/self/fd").is_dir():
        return EnvCheck(TITLE, "info", "this system has no /proc: not known")
    _cycle(request)  # what a library opens once and keeps
    before = _held()
    for _ in range(CYCLES):
        _cycle(request)
    until = time.monotonic() + PATIENCE_S
    left = _left(before)
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = _left(before)
    if left:
        found = ", ".join(f"{count} {kind}" for kind, count in left.items())
        return EnvCheck(TITLE, "fail", f"{CYCLES} environments, closed, leave {found}; end them in close()")
    return EnvCheck(TITLE, "ok", f"{CYCLES} environments, closed: no thread, open file or process")


def _cycle(request: Request) -> None:
    with Watched(request) as env:
        play(env, request, 0, usual_policy(env))
    del env
    gc.collect()


def _left(before: Held) -> dict[str, int]:
    """Kinds of which every cycle left at least one; what others end meanwhile does not count against that."""
    gc.collect()
    new = {kind: len(names - before[kind]) for kind, names in _held().items()}
    return {kind: count for kind, count in new.items() if count >= CYCLES}


def _held() -> Held:
    tasks = list(Path("/proc/self/task").iterdir())
    return {
        "threads": {task.name for task in tasks},
        "open files": set(os.listdir("/proc/self/fd")),
        "processes": {pid for task in tasks for pid in _text(task / "children").split()},
    }


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the thread has ended in between
        return ""
