"""A worker of the pool as the driver sees it."""

from __future__ import annotations

import asyncio
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

from vlrl.rewards.scoring.functions import RewardSource
from vlrl.rewards.scoring.worker import LENGTH, PROGRESS, STARTING

KILL_LIMIT_S = 10.0
"""A process that is killed and still there after so long is in the kernel's hands: it is not waited for."""


class WorkerProcess:
    """One worker: started, talked to, and ended.

    Attributes:
        overdue_s: the limit that its call overran, if it was ended for that.
    """

    def __init__(self, sources: list[RewardSource], memory_bytes: int) -> None:
        self._channel, theirs = socket.socketpair()
        page = os.memfd_create("vlrl-reward")
        os.ftruncate(page, PROGRESS.size)
        self._page = mmap.mmap(page, PROGRESS.size)
        PROGRESS.pack_into(self._page, 0, STARTING, time.monotonic())
        self.overdue_s: float | None = None
        self._ended = self._killed = False
        files = [theirs.fileno(), page]
        arguments = [*files, memory_bytes, os.getpid()]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "vlrl.rewards.scoring.worker", *map(str, arguments)],
            pass_fds=files,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the driver's business
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),  # it must find what this process finds
                "PYTHONHASHSEED": "0",  # sets come in the same order in every worker
                "OMP_NUM_THREADS": "1",
                "CUDA_VISIBLE_DEVICES": "",
            },
        )
        theirs.close()
        os.close(page)
        self._channel.setblocking(False)
        self._first = _framed(pickle.dumps(sources, pickle.HIGHEST_PROTOCOL))

    @property
    def alive(self) -> bool:
        """True while it can be given work."""
        return not self._ended and self._process.poll() is None

    def present_call(self) -> tuple[int, float]:
        """(index of the call in its chunk; -1, LEAVING or STARTING outside calls; since when)."""
        index, begin = PROGRESS.unpack_from(self._page)
        return index, begin

    async def send(self, payload: bytes) -> bool:
        """Send a chunk; False if there is nobody to take it."""
        PROGRESS.pack_into(self._page, 0, STARTING if self._first else -1, time.monotonic())
        message, self._first = self._first + _framed(payload), b""
        try:
            await asyncio.get_running_loop().sock_sendall(self._channel, message)
        except OSError:
            return False
        return True

    async def receive(self) -> bytearray | None:
        """The next message; None if the process ended."""
        if (head := await self._exactly(LENGTH.size)) is None:
            return None
        return await self._exactly(LENGTH.unpack(head)[0])

    async def _exactly(self, length: int) -> bytearray | None:
        data, loop = bytearray(length), asyncio.get_running_loop()
        view = memoryview(data)
        while view:
            try:
                received = await loop.sock_recv_into(self._channel, view)
            except OSError:
                return None
            if not received:
                return None
            view = view[received:]
        return data

    def obituary(self) -> str:
        """Why it ended."""
        if self.overdue_s is not None:
            return f"took longer than {self.overdue_s:g} s; its process was ended"
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "its process closed the connection"
        if code < 0:
            return f"its process died of {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"

    def end(self) -> None:
        """Kill it and what it started; whoever reads from it reads its end."""
        self._ended = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(OSError):  # a process that left its group may hold the other end open for ever
            self._channel.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        """The same, and wait for it, KILL_LIMIT_S at most; safe to call twice."""
        if not self._killed:
            self._killed = True
            self.end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_LIMIT_S)
            self._channel.close()


def _framed(payload: bytes) -> bytes:
    return LENGTH.pack(len(payload)) + payload
