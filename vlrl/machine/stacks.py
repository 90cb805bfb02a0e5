"""What a process is doing, and its Python stacks, as another process of its node finds out."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from pathlib import Path

STACKS_SIGNAL = signal.SIGUSR2
"""At it the process writes the Python stacks of all its threads, even while it computes in C."""
STACKS_S = 2.0
"""Seconds in which it does; one that is stopped never does."""
MAX_STACK_CHARS = 8000

STATES = {
    **{"R": "computes", "S": "sleeps", "D": "waits for a disk", "T": "is stopped", "t": "is traced"},
    "Z": "is dead",
}
"""What /proc says of a process, in words."""

_files: dict[int, int] = {}
"""By process: the descriptor of what its stacks are written to."""


def new_stacks_file() -> int:
    """A descriptor of a file in memory, which no kill leaves behind."""
    return os.memfd_create("vlrl_stacks")


def offer_stacks(file: int | None = None) -> str:
    """Have this process write its stacks when it is asked (`stacks_of` asks); the path of where to.

    Args:
        file: descriptor of `new_stacks_file`; None makes one.
    """
    pid = os.getpid()
    if pid not in _files:
        _files[pid] = new_stacks_file() if file is None else file
        faulthandler.register(STACKS_SIGNAL, file=_files[pid], all_threads=True)
    return path_of(pid, _files[pid])


def path_of(pid: int, file: int) -> str:
    """Where other processes find a descriptor of a process."""
    return f"/proc/{pid}/fd/{file}"


def state_of(pid: int) -> str:
    """What a process of this node is doing, by its letter in /proc; "" if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def stacks_of(pid: int, stacks_file: str) -> str:
    """What a process of this node is doing in words, and its stacks if it answers.

    Args:
        pid: of the process.
        stacks_file: that `offer_stacks` returned there.
    """
    state, file = state_of(pid), Path(stacks_file)
    if not state or not file.exists():
        return f"process {pid} is gone"
    words = f"process {pid} {STATES.get(state, f'is in state {state}')}"
    if state in "TtZ":
        return f"{words} (state {state}) and does not answer"
    if not _is_heard(pid):
        return f"{words} and offers no stacks yet"
    start = size = file.stat().st_size
    os.kill(pid, STACKS_SIGNAL)
    end = time.monotonic() + STACKS_S
    while time.monotonic() < end:
        time.sleep(0.1)
        before, size = size, file.stat().st_size
        if start < before == size:
            break
    if size == start:
        return f"{words} (state {state}) and does not answer"
    with file.open(encoding="utf-8", errors="replace") as stacks:
        stacks.seek(start)
        return f"{words}:\n{stacks.read(MAX_STACK_CHARS)}"


def _is_heard(pid: int) -> bool:
    """Whether it catches the signal: one that has just started would die of it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (STACKS_SIGNAL - 1) & 1)
