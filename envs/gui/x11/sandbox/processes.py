"""The processes of a desktop: who they are, whether they work, and their end."""

from __future__ import annotations

import math
import os
import platform
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from vlrl.envs.process_tree import read_proc, tree

_POLL = {"x86_64": b"7"}.get(platform.machine(), b"")
_END_S = 10.0
_BUSY_STATES = b"RD"  # running or waiting for its turn; waiting for a disk


def name_of(pid: int) -> str:
    """A process's name; "" if it has ended."""
    with suppress(OSError):
        return read_proc(f"/proc/{pid}/comm").decode(errors="replace").strip()
    return ""


def cpu_time(pids: Iterable[int]) -> dict[int, float]:
    """Seconds of processor time of each, its ended threads included; those that ended are left out."""
    times = {}
    for pid in pids:
        with suppress(OSError):
            times[pid] = time.clock_gettime(~pid << 3 | 2)  # the clock of a process: clock_getcpuclockid(3)
    return times


class Rest(NamedTuple):
    """What a process is doing while it uses no processor time."""

    is_busy: bool
    """A thread of it waits for a processor or for a disk."""
    timer_s: float
    """The least that a thread of it sleeps for a timer of its own; infinity without one."""


def rest_of(pids: Iterable[int]) -> Rest:
    """The same of several at once."""
    timer_s = math.inf
    for pid in pids:
        with suppress(OSError):  # it has ended
            for thread in os.listdir(f"/proc/{pid}/task"):
                if read_proc(f"/proc/{pid}/task/{thread}/stat").rpartition(b") ")[2][:1] in _BUSY_STATES:
                    return Rest(True, timer_s)
                call = read_proc(f"/proc/{pid}/task/{thread}/syscall").split()
                if call == [b"running"]:  # its timer ended after its state was read
                    return Rest(True, timer_s)
                timer_s = min(timer_s, _poll_timeout(call))
    return Rest(False, timer_s)


def _poll_timeout(call: list[bytes]) -> float:
    """Toolkits sleep in poll(2): its third argument is the time until their next timer in milliseconds."""
    if call[0] != _POLL or len(call) < 4:
        return math.inf
    timeout_ms = int(call[3], 16) & 0xFFFFFFFF
    return math.inf if timeout_ms >> 31 else timeout_ms / 1000


def end_all(process: subprocess.Popen[bytes], mark: str | None) -> None:
    """Kill a process and what it started, and wait until they are gone.

    Args:
        process: a box, whose end is the end of everything in it, or a plain process.
        mark: of a plain process, an entry (NAME=value) that the environment of all it started has.
    """
    if mark is None:
        for first in tree(process.pid)[1:2]:  # it ends last, and its box after it: nobody is left to others
            _kill(first)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return
    while marked := _marked(mark):
        for pid in marked:
            _kill(pid)
        process.poll()
        time.sleep(0.002)
    process.wait()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                if mark.encode() in read_proc(f"/proc/{name}/environ").split(b"\0"):
                    found.append(int(name))
    return found
