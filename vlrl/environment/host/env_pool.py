"""Processes of environments: idle ones for the next episode, and those that are being closed."""

from __future__ import annotations

import time

from vlrl.environment.host.inline import CLOSE_LIMIT_S
from vlrl.environment.host.key import key_of
from vlrl.environment.host.process import EnvProcess
from vlrl.errors import ResourceError
from vlrl.types import EnvTask

START_ATTEMPTS = 3
"""Processes in a row that may die as they start, killed perhaps while memory was short; then the run ends."""


class EnvPool:
    """A pool of at most `size` processes, in use and warm, beside those that are ending."""

    def __init__(self, size: int, memory_gib: float) -> None:
        self._size, self._memory_gib = size, memory_gib
        self._in_use: set[EnvProcess] = set()
        self._warm: list[EnvProcess] = []
        self._leaving: list[tuple[EnvProcess, float]] = []
        self._closed = False

    async def take(self, spec: EnvTask, limit_s: float) -> EnvProcess:
        """A process with the environment made: a warm one, or a new one.

        Raises:
            EnvFailure, ConfigError: of its constructor.
            ResourceError: if START_ATTEMPTS processes did not start, or one takes too long.
        """
        self._clear()
        key = key_of(spec)
        for process in reversed(self._warm):
            if process.key == key:
                self._warm.remove(process)
                self._in_use.add(process)
                return process
        if len(self._in_use) + len(self._warm) >= self._size:
            self._dismiss(self._warm.pop(0))
        for attempts_left in reversed(range(START_ATTEMPTS)):
            process = EnvProcess(spec, self._memory_gib, self._give_back)
            self._in_use.add(process)
            try:
                await process.open(limit_s)
                break
            except ResourceError:
                self._give_back(process, False)
                if not attempts_left or process.worker.overdue_s is not None:
                    raise
            except BaseException:
                self._give_back(process, False)
                raise
        return process

    def _give_back(self, process: EnvProcess, healthy: bool) -> None:
        self._in_use.discard(process)
        if healthy and process.worker.alive and not self._closed:
            self._warm.append(process)
        elif process.idle and not self._closed:
            self._dismiss(process)  # what it holds outside of the process is closed
        else:
            process.worker.end()
            self._leaving.append((process, 0.0))
        self._clear()

    def _dismiss(self, process: EnvProcess) -> None:
        process.worker.dismiss()
        self._leaving.append((process, time.monotonic() + CLOSE_LIMIT_S))

    def _clear(self) -> None:
        """Bury the dead, and see that others die in time; never waits for one."""
        dead = [process for process in self._warm if not process.worker.alive]
        self._warm = [process for process in self._warm if process.worker.alive]
        self._leaving += [(process, 0.0) for process in dead]
        still = []
        for process, until in self._leaving:
            if process.worker.running and time.monotonic() >= until:
                process.worker.end()
            if process.worker.running:
                still.append((process, until))
            else:
                process.worker.kill()
        self._leaving = still

    def close(self) -> None:
        """End all: warm ones close their environments first, those in use are killed."""
        self._closed = True
        for process in self._in_use:
            process.end()
        for process in self._warm:
            self._dismiss(process)
        self._warm.clear()
        while any(until > time.monotonic() and p.worker.running for p, until in self._leaving):
            time.sleep(0.005)
        for process, _ in self._leaving:
            process.worker.kill()
        self._leaving.clear()
        for process in self._in_use:
            process.worker.kill()
