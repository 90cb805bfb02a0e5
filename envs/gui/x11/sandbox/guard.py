"""The guard of all desktops of this process: one that takes too much memory, or too many files, is ended.

Each process of a desktop has limits, and its file systems have sizes; but there may be many processes, and a
file without content costs the kernel a kilobyte that no file system's size counts. So a thread looks at the
sums, a few times a second.
"""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections.abc import Iterable
from typing import Protocol

from vlrl.envs.gui.x11.sandbox.shells import AppLimits
from vlrl.envs.process_tree import num_files, read_proc, tree, usage_of

MOST_MEMORY = 1 << 30
MOST_ADDRESSES = 1 << 34
"""Bytes of address space, see `vlrl.envs.process_tree.Usage`: six apps and a terminal have 2 GiB of it."""
MOST_FILES = 50_000
LOOK_S = 0.2
_BROWSER = "/usr/lib/firefox-esr/"
_WRITABLE = ("/tmp", "/dev/shm")


class WatchedDesktop(Protocol):
    """A desktop's processes."""

    @property
    def root(self) -> int:
        """The process that all of it descends from."""
        ...

    @property
    def boxed(self) -> bool:
        """True if its file systems are its own."""
        ...

    @property
    def home(self) -> str:
        """The user's folder, as the apps see it."""
        ...

    def condemn(self, reason: str) -> None:
        """End it."""
        ...


class _Guard:
    def __init__(self) -> None:
        self._watched: weakref.WeakSet[WatchedDesktop] = weakref.WeakSet()
        self._changed = threading.Condition()
        threading.Thread(target=self._serve, name="vlrl-x11-guard", daemon=True).start()

    def add(self, desktop: WatchedDesktop) -> None:
        with self._changed:
            self._watched.add(desktop)
            self._changed.notify()

    def remove(self, desktop: WatchedDesktop) -> None:
        with self._changed:
            self._watched.discard(desktop)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._watched) > 0)
                desktops = list(self._watched)
            for desktop in desktops:
                if reason := excess_of(desktop):
                    self.remove(desktop)
                    desktop.condemn(reason)
            del desktops
            time.sleep(LOOK_S)


def excess_of(desktop: WatchedDesktop) -> str:
    """What a desktop has too much of, in words; empty if nothing."""
    pids = tree(desktop.root)
    usage = usage_of(pids)
    if usage.memory > MOST_MEMORY:
        return f"its processes held more than {MOST_MEMORY >> 20} MiB of memory"
    if usage.address > MOST_ADDRESSES and usage_of(_countable(pids)).address > MOST_ADDRESSES:
        return f"its processes mapped more than {MOST_ADDRESSES >> 20} MiB of memory"
    if desktop.boxed:
        inside = f"/proc/{pids[-1]}/root"  # the youngest is one of the apps', or what starts them
        if any(num_files(inside + folder) > MOST_FILES for folder in (*_WRITABLE, desktop.home)):
            return f"it had more than {MOST_FILES} files"
    return ""


def _countable(pids: Iterable[int]) -> list[int]:
    """Processes whose address space counts: not those of a browser that was started with its own limit."""
    return [
        pid for pid in pids if not (_is_browser(pid) and _address_limit(pid) > AppLimits().address_mib << 20)
    ]


def _is_browser(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/exe").startswith(_BROWSER)
    except OSError:
        return False


def _address_limit(pid: int) -> float:
    """Bytes; an app's processes may only lower theirs."""
    try:
        lines = read_proc(f"/proc/{pid}/limits").decode().splitlines()
    except OSError:
        return 0
    hard = next(line for line in lines if line.startswith("Max address space")).split()[4]
    return float(hard) if hard.isdigit() else math.inf


_lock = threading.Lock()
_guard: _Guard | None = None


def _forget() -> None:
    """Forget the guard in a forked child, where there is no such thread."""
    global _guard, _lock
    _guard, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def watch(desktop: WatchedDesktop) -> None:
    """Look at it from now on, until it is gone or `leave`."""
    global _guard
    with _lock:
        if _guard is None:
            _guard = _Guard()
    _guard.add(desktop)


def leave(desktop: WatchedDesktop) -> None:
    """Look at it no longer."""
    if _guard is not None:
        _guard.remove(desktop)
