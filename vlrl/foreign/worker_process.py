"""A worker process over a socket: how its parent starts, calls and ends it, and its own side.

    driver: WorkerProcess(module, …)  ◄── frames ──►  worker: join_driver(), receive(), send()

It is started by exec and not by fork, so it knows nothing of the driver's CUDA or Ray. It dies with the
driver, whatever it is doing, and is killed together with all that it started. Its output goes to stderr, and
Ctrl-C does not reach it. A frame is its length and as many bytes.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from vlrl.machine.stacks import new_stacks_file, offer_stacks, path_of, stacks_of

SEND_BYTES = 4 << 20
"""What a worker may send before it waits, as far as the system allows: a screenshot in few pieces."""
LENGTH = struct.Struct("<Q")
"""Bytes of the frame that follows."""

_workers: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()
_listing = threading.Lock()
"""Held while the set of workers grows or is read: it is read from other threads."""

KILL_LIMIT_S = 10.0
"""A process that is killed and still there after so long is in the kernel's hands: it is not waited for."""

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class WorkerProcess:
    """One worker, seen by the driver.

    Attributes:
        role: what it is to people.
        overdue_s: the limit that it overran, if it was ended for that.
        num_received: bytes that came from it.
        waited_for_since: when an answer began to be waited for, by time.monotonic; None while none is.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[object] = (),
        *,
        role: str,
        memory_bytes: int,
        files: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it; it is not waited for.

        Args:
            module: run as `python -m`; it begins with `join_driver`.
            arguments: that `join_driver` returns, as text.
            role: what it is, in the words of messages.
            memory_bytes: most bytes of data it may have.
            files: descriptors that it keeps.
            environment: variables that it has beside, or in the place of, those given here.
        """
        self._channel, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        self.role = role
        self.waited_for_since: float | None = None
        self.overdue_s: float | None = None
        self.num_received = 0
        self._ended = self._killed = False
        self._num_users = 0
        stacks = new_stacks_file()
        own = [theirs.fileno(), memory_bytes, os.getpid(), stacks]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *map(str, [*own, *arguments])],
            pass_fds=[theirs.fileno(), stacks, *files],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the driver's business
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),  # it must find what this process finds
                "PYTHONHASHSEED": "0",  # sets come in the same order in every worker
                "OMP_NUM_THREADS": "1",
                "CUDA_VISIBLE_DEVICES": "",
                **(environment or {}),
            },
        )
        theirs.close()
        os.close(stacks)
        self._stacks_file = path_of(self._process.pid, stacks)
        self._channel.setblocking(False)
        with _listing:
            _workers.add(self)

    def __str__(self) -> str:
        return self.role

    def stacks(self) -> str:
        """How long an answer of it is waited for, what it is doing, and its stacks if it tells them."""
        since = self.waited_for_since
        waited = "" if since is None else f"waited for since {time.monotonic() - since:.0f} s, "
        return waited + stacks_of(self._process.pid, self._stacks_file)

    @property
    def alive(self) -> bool:
        """True while it can be given work."""
        return not self._ended and self.running

    @property
    def running(self) -> bool:
        """True until it is gone, also when it was told to go."""
        return self._process.poll() is None

    @property
    def is_answering(self) -> bool:
        """True if it sent something that has not been received."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return any(flags & select.POLLIN and not flags & select.POLLHUP for _, flags in poll.poll(0))

    async def send(self, *payloads: bytes) -> bool:
        """Send a frame of each; False if the process has ended."""
        frames = b"".join(LENGTH.pack(len(payload)) + payload for payload in payloads)
        with self._using_channel():
            try:
                await asyncio.get_running_loop().sock_sendall(self._channel, frames)
            except OSError:
                return False
        return True

    async def receive(self) -> bytearray | None:
        """The next frame; None if the process ended."""
        self.waited_for_since = time.monotonic()
        try:
            with self._using_channel():
                if (head := await self._exactly(LENGTH.size)) is None:
                    return None
                return await self._exactly(LENGTH.unpack(head)[0])
        finally:
            self.waited_for_since = None

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
            self.num_received += received
            view = view[received:]
        return data

    @contextmanager
    def _using_channel(self) -> Iterator[None]:
        """A channel closed under a coroutine would stay in the event loop's books, for its next owner."""
        self._num_users += 1
        try:
            yield
        finally:
            self._num_users -= 1
            if self._killed and not self._num_users:
                self._channel.close()

    def death_message(self) -> str:
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

    def dismiss(self) -> None:
        """Let it end by itself: its next `receive` is told that there is no more."""
        self._ended = True
        with suppress(OSError):  # it has ended already
            self._channel.shutdown(socket.SHUT_WR)

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
            if not self._num_users:
                self._channel.close()


def waited_for() -> list[WorkerProcess]:
    """This process' workers whose answer is waited for, the longest first; to be called from any thread."""
    with _listing:
        workers = list(_workers)
    found = [(worker.waited_for_since or math.inf, worker) for worker in workers]
    return [worker for since, worker in sorted(found, key=lambda each: each[0]) if since < math.inf]


def join_driver() -> tuple[socket.socket, list[str]]:
    """(its socket, its own arguments): what a worker asks for before anything else."""
    channel_fd, most_bytes, driver, stacks = map(int, sys.argv[1:5])
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != driver:
        os._exit(0)
    os.dup2(2, 1)  # what a plug-in prints must not spoil what the driver prints
    for own in (channel_fd, stacks):  # what it starts would keep the socket open when it has died
        os.set_inheritable(own, False)
    offer_stacks(stacks)
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return socket.socket(fileno=channel_fd), sys.argv[5:]


def send(channel: socket.socket, *pieces: bytes | memoryview) -> None:
    """Send one frame, given in pieces."""
    length = sum(memoryview(piece).nbytes for piece in pieces)
    head, *rest = pieces
    channel.sendall(LENGTH.pack(length) + bytes(head))
    for piece in rest:
        channel.sendall(piece)


def receive(channel: socket.socket) -> bytearray | None:
    """The next frame; None if there will be none."""
    head = _exactly(channel, LENGTH.size)
    return None if head is None else _exactly(channel, LENGTH.unpack(head)[0])


def _exactly(channel: socket.socket, length: int) -> bytearray | None:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        received = channel.recv_into(view)
        if not received:
            return None
        view = view[received:]
    return data
