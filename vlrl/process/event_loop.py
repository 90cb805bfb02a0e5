"""How Python code calls a page: with a config or a mapping, in a script, a thread or a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from vlrl.config import Config, parse_config
from vlrl.process.interrupts import signals_passed_on
from vlrl.tracking.console import TrainConsole

T = TypeVar("T")

WAKE_S = 0.5
"""A signal that comes just before a thread begins to wait is only handled when it wakes."""


def call_page(
    page: Callable[[Config, TrainConsole], T],
    config: Config | Mapping[str, Any],
    console: TrainConsole | None,
    own_console: Callable[[Config], TrainConsole],
) -> T:
    """What a page returns or raises, called beside an event loop that runs already.

    Args:
        page: takes the checked config and the console.
        config: a config, or a mapping that is one; functions and classes may stand where it has names.
        console: where progress is shown; None opens one of its own and closes it afterwards.
        own_console: makes that one.

    Raises:
        ConfigError: for a mapping that is not a config.
    """
    checked = config if isinstance(config, Config) else parse_config(dict(config))

    def run() -> T:
        if console is not None:
            return page(checked, console)
        with own_console(checked) as own:
            return page(checked, own)

    return beside_event_loop(run)


def beside_event_loop(work: Callable[[], T]) -> T:
    """What `work` returns or raises: called here, or in another thread if this one runs an event loop.

    Either way this thread waits for it, and with it the loop. Ctrl-C asks what runs in the other thread to
    finish its step and save, see `vlrl.process.interrupts`.
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
