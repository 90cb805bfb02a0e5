"""Ctrl-C and SIGTERM: the first asks a run to finish its step and save, the second stops it at once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Installed for the length of a block; `requested` is read between steps.

    Outside `graceful` sections (starting engines, evaluating) there is no step to finish, and the first
    signal already raises KeyboardInterrupt. While `closing`, signals are only noted: what is stopped halfway
    would leave processes and shared memory behind.
    """

    def __init__(self) -> None:
        self.requested = False
        self.graceful = False
        self.closing = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        """Take over both signals."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give them back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.closing:
            self.requested = True
            return
        if self.requested or not self.graceful:
            raise KeyboardInterrupt
        self.requested = True
