"""A process of the pool: `python -m` it, with a socket, a page of shared memory and a limit.

It is sent rewards to find, then chunks of calls, and answers with results. On the shared page it says which
call it is at and since when, so that the driver knows whom to blame if it hangs or dies; it sends what it has
whenever it has worked for a while, so that little is lost then. It dies with the driver, whatever it is at.
"""

from __future__ import annotations

import asyncio
import inspect
import mmap
import os
import pickle
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from vlrl.foreign.failure import Failure, failure_of
from vlrl.foreign.worker_process import join_driver, receive, send
from vlrl.scoring.functions import RewardFunction, RewardSource, Value, find_reward

Call: TypeAlias = tuple[int, Any, Any, Mapping[str, Any]]
"""(number of the reward, completion, answer, context); the last three are lists for a batched reward."""
Outcome: TypeAlias = Failure | list[Value | Failure]
"""The outcome of one call: why it failed, or one result a sample."""

Performer: TypeAlias = Callable[[RewardFunction | Failure, Any, Any, Mapping[str, Any]], Outcome]
"""Makes a call, as `perform` does."""

PROGRESS = struct.Struct("<qd")
"""(index of the present call in its chunk, -1 outside calls; since when, in seconds of time.monotonic)."""
LEAVING = -2
"""The index of a worker that ends by itself: no sample failed, and the rest of its chunk is called again."""
STARTING = -3
"""The index of a worker that starts or imports a plug-in: no sample is to blame for its end."""

FLUSH_S = 0.02
"""Results are sent when they are this old."""


def main() -> None:
    """Serve until the driver is gone; its own argument is the shared memory."""
    channel, (page_fd,) = join_driver()
    serve(channel, page_fd, perform)


def serve(channel: socket.socket, page_fd: str, performer: Performer) -> None:
    """Receive rewards and chunks of calls, answer each; never returns.

    Args:
        channel: to the driver.
        page_fd: descriptor of the shared page.
        performer: makes a call: `perform`, or what does more.
    """
    os.set_inheritable(int(page_fd), False)
    page = mmap.mmap(int(page_fd), PROGRESS.size)
    sources: list[RewardSource] = pickle.loads(_receive(channel))
    PROGRESS.pack_into(page, 0, -1, time.monotonic())
    found: dict[int, RewardFunction | Failure] = {}
    while True:
        try:
            calls = pickle.loads(_receive(channel))
        except Exception as error:  # of a stranger's classes in the context
            _send(channel, failure_of(error))
        else:
            _serve(channel, page, sources, found, calls, performer)


def _serve(
    channel: socket.socket,
    page: mmap.mmap,
    sources: Sequence[RewardSource],
    found: dict[int, RewardFunction | Failure],
    calls: Sequence[tuple[int, bytes]],
    performer: Performer,
) -> None:
    """Answer one chunk with lists of (outcome, seconds), in the order of the calls."""
    done: list[tuple[Outcome, float]] = []
    flushed = time.monotonic()
    for index, (which, arguments) in enumerate(calls):
        if which not in found:
            PROGRESS.pack_into(page, 0, STARTING, time.monotonic())
            found[which] = _find(sources[which])
        PROGRESS.pack_into(page, 0, index, time.monotonic())
        begin = time.monotonic()
        try:
            completion, answer, context = pickle.loads(arguments)
        except Exception as error:  # of a stranger's classes in the context
            outcome: Outcome = failure_of(error)
        else:
            begin = time.monotonic()
            outcome = performer(found[which], completion, answer, context)
        end = time.monotonic()
        done.append((outcome, end - begin))
        leaves = isinstance(outcome, Failure) and outcome.reason.startswith("MemoryError")
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
    function: RewardFunction | Failure, completion: Any, answer: Any, context: Mapping[str, Any]
) -> Outcome:
    """Call a reward here and now; whatever it does but hang or crash ends in an outcome."""
    if isinstance(function, Failure):
        return function
    try:
        returned = function.invoke(completion, answer, context)
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
        return function.results(returned, len(completion) if function.declared.batched else None)
    except (Exception, SystemExit) as error:  # a stranger's code: whatever it raises is a failure
        return failure_of(error)


async def _awaited(returned: Any) -> Any:
    return await returned


def _find(source: RewardSource) -> RewardFunction | Failure:
    try:
        return find_reward(*source)
    except (
        Exception,
        SystemExit,
    ) as error:  # the driver could import it; this process may be short of memory
        return failure_of(error)


def _send(channel: socket.socket, message: Any) -> None:
    send(channel, pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def _receive(channel: socket.socket) -> bytearray:
    """The next message; ends the process if there will be none."""
    if (payload := receive(channel)) is None:
        os._exit(0)
    return payload


if __name__ == "__main__":
    main()
