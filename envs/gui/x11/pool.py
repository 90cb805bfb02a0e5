"""Desktops booted ahead: those of one kind are shared by all environments of this process."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.x11.desktop import Desktop, Machine

_BOOTED_AT_ONCE = 2


class DesktopPool:
    """Keeps as many desktops of one kind ready as its users ask for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._lock = threading.Lock()
        self._booting: deque[Future[Desktop]] = deque()
        self._asked: dict[int, int] = {}
        self._executor = ThreadPoolExecutor(_BOOTED_AT_ONCE, "vlrl-x11-boot")

    def join(self, user: object, size: int) -> None:
        """Have `size` desktops ready for a user from now on."""
        with self._lock:
            self._asked[id(user)] = size
            self._fill()

    def leave(self, user: object) -> None:
        """Keep none for it any longer; desktops that are too many now are ended."""
        with self._lock:
            self._asked.pop(id(user), None)
            surplus = [self._booting.pop() for _ in range(len(self._booting) - sum(self._asked.values()))]
        for future in surplus:
            if not future.cancel():
                _end(future)

    def take(self) -> Desktop:
        """A desktop of one's own, booted already if one is ready; the taker closes it.

        Raises:
            ConfigError: if programs or the sandbox are missing.
            EnvFailure: if none comes up.
        """
        while True:
            with self._lock:
                future = self._booting.popleft() if self._booting else None
                self._fill()
            if future is None:
                return Desktop(self.machine)
            desktop = future.result()
            try:
                desktop.check()  # it may have died while it waited
                return desktop
            except EnvFailure:
                desktop.close()

    def end(self, desktop: Desktop) -> Future[None]:
        """End a desktop that was taken, in the background."""
        return self._executor.submit(desktop.close)

    def _fill(self) -> None:
        while len(self._booting) < sum(self._asked.values()):
            self._booting.append(self._executor.submit(Desktop, self.machine))


def _end(future: Future[Desktop]) -> None:
    if future.exception() is None:
        future.result().close()


_pools: dict[Machine, DesktopPool] = {}
_lock = threading.Lock()


def pool_of(machine: Machine) -> DesktopPool:
    """This process's pool of one kind of desktop."""
    with _lock:
        return _pools.setdefault(machine, DesktopPool(machine))


@atexit.register
def _drain() -> None:
    for pool in _pools.values():
        for user in list(pool._asked):
            pool._asked.pop(user)
        pool.leave(None)
