"""Ctrl-C and SIGTERM, from the first instruction of a command to its last.

    starting   no run yet: an import is left at once, by os._exit; anything else by KeyboardInterrupt
    a run      outside its steps: KeyboardInterrupt at once; within them the first signal asks the run to
               finish the step and save, the second stops it at once
    closing    signals are only noted: what is stopped halfway would leave processes and shared memory behind

Whatever a signal does, it says so on stderr at once. Only the main thread of a process may handle signals: a
run that is started in another one (a server's, a notebook's) leaves them as they are.

Only the standard library is imported here: nothing may come between the start of a command and its handlers.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ClassVar

from vlrl.process.json_stdout import stdout_descriptor

SIGNALS = (signal.SIGINT, signal.SIGTERM)
EXIT_CODE = 130
STARTING = "interrupted while the command was starting; nothing was changed"


class Interrupts:
    """Installed for the length of a block; `requested` is read between steps.

    Attributes:
        requested: a signal came.
        graceful: there is a step to finish and something to save.
        closing: everything is being stopped anyway.
        step: number of the step at work, from 1, for what is said.
        saved: steps that the last checkpoint holds.
    """

    _in_other_threads: ClassVar[set[Interrupts]] = set()

    def __init__(self) -> None:
        self.requested = self.graceful = self.closing = False
        self.step = self.saved = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        """Take over both signals, in the main thread.

        Raises:
            KeyboardInterrupt: if one came before, and the code that it interrupted swallowed the exception.
        """
        if threading.current_thread() is not threading.main_thread():
            self._in_other_threads.add(self)
            self.requested = _Starting.requested
            return self
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)
        if _Starting.requested:
            raise KeyboardInterrupt
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give them back."""
        self._in_other_threads.discard(self)
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @classmethod
    def ask_other_threads(cls) -> None:
        """Ask the runs of threads that get no signals to stop: after their step, or where they look next."""
        for interrupts in list(cls._in_other_threads):
            if not interrupts.requested and not interrupts.closing:
                say(f"finishing step {interrupts.step}, then saving" if interrupts.graceful else "stopping")
            interrupts.requested = True

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal came: an exception within an import may have been swallowed."""
        if self.requested:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = self.requested, True
        if self.closing:
            say("stopping already: engines and processes are being closed")
            return
        if self.graceful and not again:
            lost = f"the steps after {self.saved}" if self.saved else "all steps: there is no checkpoint yet"
            say(f"finishing step {self.step}, then saving; again: stop now, losing {lost}")
            return
        say("stopping now: engines and processes are being closed")
        raise KeyboardInterrupt


class _Starting:
    """Whether a signal came before any run took the signals over."""

    requested = False


@contextmanager
def signals_while_starting(*, as_json: bool = False) -> Iterator[None]:
    """Handle both signals until a run does, and after it; as they were before the block when it ends.

    Python's own reaction is not enough: SIGTERM would end the process without a message, a KeyboardInterrupt
    in the middle of an import is swallowed by packages that try what may be missing.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if _Starting.requested or _is_import(frame):
            if as_json:
                write(stdout_descriptor(), json.dumps({"error": STARTING, "kind": "Interrupted"}) + "\n")
            say(f"error: {STARTING}")
            os._exit(EXIT_CODE)
        _Starting.requested = True
        raise KeyboardInterrupt

    with _handled(handle):
        yield


@contextmanager
def signals_passed_on() -> Iterator[None]:
    """While this thread, if it is the main one, waits for a run in another: both signals ask that to stop."""

    def handle(number: int, frame: FrameType | None) -> None:
        _Starting.requested = True  # of a run that has not begun yet
        Interrupts.ask_other_threads()

    with _handled(handle):
        yield


@contextmanager
def _handled(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Both signals go to `handle` while this block runs; in another thread than the main one, as they did."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        _Starting.requested = False
        for number, handler in previous.items():
            signal.signal(number, handler)


def _is_import(frame: FrameType | None) -> bool:
    """Whether what the signal came upon is importing something."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def say(text: str) -> None:
    """Write to stderr, past Python's buffers: a handler may have come in the middle of a print."""
    write(2, f"\n{text}\n")


def write(descriptor: int, text: str) -> None:
    """Write text to a descriptor; nothing is written to a closed one."""
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return
