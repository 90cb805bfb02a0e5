"""A process of the pool: `python -m` it, with a socket, a page of shared memory and a limit.

It is sent rewards to find, then chunks of calls, and answers with results. On the shared page it says which
call it is at and since when, so that the driver knows whom to blame if it hangs or dies; it sends what it has
whenever it has worked for a while, so that little is lost then. It dies with the driver, whatever it is at.
"""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import mmap
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from vlrl.rewards.scoring.functions import RewardFunction, RewardSource, Trouble, Value, find_reward, trouble

Call: TypeAlias = tuple[int, Any, Any, Mapping[str, Any]]
"""(number of the reward, completion, answer, context); the last three are lists for a batched reward."""
Outcome: TypeAlias = Trouble | list[Value | Trouble]
"""Of one call: why it failed, or one result a sample."""

PROGRESS = struct.Struct("<qd")
"""(index of the present call in its chunk, -1 outside calls; since when, in seconds of time.monotonic)."""
LEAVING = -2
"""The index of a worker that ends because it wants to: nobody is to blame for what it leaves undone."""
STARTING = -3
"""The index of a worker that starts or imports a plug-in: no sample is to blame for its end."""
LENGTH = struct.Struct("<Q")
"""Bytes of the message that follows."""

FLUSH_S = 0.02
"""Results are sent when they are this old."""

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Serve until the driver is gone. Arguments: socket, shared memory, most bytes of data, driver's pid."""
    channel_fd, page_fd, most_bytes, driver = map(int, sys.argv[1:5])
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != driver:
        os._exit(0)
    os.dup2(2, 1)  # a reward that prints must not spoil what the driver prints
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for inherited in (channel_fd, page_fd):  # what a reward starts must not keep the connection open
        os.set_inheritable(inherited, False)
    channel, page = socket.socket(fileno=channel_fd), mmap.mmap(page_fd, PROGRESS.size)
    sources: list[RewardSource] = pickle.loads(_receive(channel))
    PROGRESS.pack_into(page, 0, -1, time.monotonic())
    found: dict[int, RewardFunction | Trouble] = {}
    while True:
        try:
            calls = pickle.loads(_receive(channel))
        except Exception as error:  # of a stranger's classes in the context
            _send(channel, trouble(error))
        else:
            _serve(channel, page, sources, found, calls)


def _serve(
    channel: socket.socket,
    page: mmap.mmap,
    sources: Sequence[RewardSource],
    found: dict[int, RewardFunction | Trouble],
    calls: Sequence[Call],
) -> None:
    """Answer one chunk with lists of (outcome, seconds), in the order of the calls."""
    done: list[tuple[Outcome, float]] = []
    flushed = time.monotonic()
    for index, (which, completion, answer, context) in enumerate(calls):
        if which not in found:
            PROGRESS.pack_into(page, 0, STARTING, time.monotonic())
            found[which] = _find(sources[which])
        begin = time.monotonic()
        PROGRESS.pack_into(page, 0, index, begin)
        outcome = perform(found[which], completion, answer, context)
        end = time.monotonic()
        done.append((outcome, end - begin))
        leaves = isinstance(outcome, Trouble) and outcome.reason.startswith("MemoryError")
        # Before results are sent: who has them all gives out the next chunk, and must see whether it leaves.
        PROGRESS.pack_into(page, 0, LEAVING if leaves else -1, end)
        if leaves or end - flushed > FLUSH_S:
            _send(channel, done)
            done, flushed = [], end
        if leaves:
            os._exit(0)  # what is left of its memory is in pieces
    if done:
        _send(channel, done)


def perform(
    function: RewardFunction | Trouble, completion: Any, answer: Any, context: Mapping[str, Any]
) -> Outcome:
    """Call a reward here and now; whatever it does but hang or crash ends in an outcome."""
    if isinstance(function, Trouble):
        return function
    try:
        returned = function.invoke(completion, answer, context)
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
        return function.results(returned, len(completion) if function.declared.batched else None)
    except (Exception, SystemExit) as error:  # a stranger's code: whatever it raises is a failure
        return trouble(error)


async def _awaited(returned: Any) -> Any:
    return await returned


def _find(source: RewardSource) -> RewardFunction | Trouble:
    try:
        return find_reward(*source)
    except (
        Exception,
        SystemExit,
    ) as error:  # the driver could import it; this process may be short of memory
        return trouble(error)


def _send(channel: socket.socket, message: Any) -> None:
    payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    channel.sendall(LENGTH.pack(len(payload)) + payload)


def _receive(channel: socket.socket) -> bytearray:
    """The next message; ends the process if there will be none."""
    (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    return _exactly(channel, length)


def _exactly(channel: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        received = channel.recv_into(view)
        if not received:
            os._exit(0)
        view = view[received:]
    return data


if __name__ == "__main__":
    main()
