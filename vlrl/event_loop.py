"""A run has an event loop of its own, also where one runs already: in a notebook, or in a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from vlrl.interrupts import signals_passed_on

T = TypeVar("T")

WAKE_S = 0.5
"""A signal that comes just before a thread begins to wait is only handled when it wakes."""


def beside_event_loop(work: Callable[[], T]) -> T:
    """What `work` returns or raises: called here, or in another thread if this one runs an event loop.

    Either way this thread waits for it, and with it the loop. Ctrl-C asks what runs in the other thread to
    finish its step and save, see `vlrl.interrupts`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with signals_passed_on(), ThreadPoolExecutor(1, thread_name_prefix="vlrl-run") as executor:
        future = executor.submit(work)
        while not wait([future], timeout=WAKE_S).done:
            continue
        return future.result()
