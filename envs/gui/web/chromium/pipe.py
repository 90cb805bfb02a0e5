"""The Chrome DevTools Protocol over a pair of pipes, for many threads at once.

A message is JSON and ends with a zero byte. Closing the pipes ends the browser, so no browser outlives
its driver. Commands and events: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any, TypeAlias

Listener: TypeAlias = Callable[[str, Mapping[str, Any]], None]
"""Called with an event's method and parameters in the reading thread: it may send, not wait."""
Answer: TypeAlias = "Future[dict[str, Any]]"

_CHUNK_BYTES = 1 << 18


class BrowserFailure(Exception):
    """The browser or a page died, hung or refused a command: an environment's failure, never a reward."""


class Overdue(BrowserFailure):
    """It did not answer in time."""


class Deadline:
    """A moment until which something has to be done."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._at = time.monotonic() + limit_s

    def part(self, share: float) -> Deadline:
        """One that is not after this, and not later than a share of the whole from now."""
        return Deadline(min(self.left_s, self.limit_s * share))

    @property
    def left_s(self) -> float:
        """Seconds until then, 0 when it is over."""
        return max(0.0, self._at - time.monotonic())

    def wait(self, answer: Answer, what: str) -> dict[str, Any]:
        """The answer.

        Raises:
            BrowserFailure: if the browser refused or died.
            Overdue: if it did not answer in time.
        """
        try:
            return answer.result(self.left_s)
        except FutureTimeout:
            raise Overdue(f"the browser did not answer {what} within {self.limit_s:g} s") from None


def is_answered(answer: Answer, within_s: float) -> bool:
    """Wait so many seconds at most; true once there is an answer, be it a failure."""
    with suppress(FutureTimeout):
        answer.exception(within_s)
    return answer.done()


class Pipe:
    """Commands to a browser, and its answers and events."""

    def __init__(self, writing: int, reading: int, on_end: Callable[[], str]) -> None:
        """Take over two descriptors and start to read.

        Args:
            writing: where commands go.
            reading: where answers and events come from.
            on_end: called once when the browser is gone; says why.
        """
        self._writing, self._reading, self._on_end = writing, reading, on_end
        self._lock = threading.Lock()
        self._num_sent = 0
        self._waiting: dict[int, tuple[str, str, Answer]] = {}
        self._listeners: dict[str, Listener] = {}
        self._end = ""
        threading.Thread(target=self._read, name="vlrl-browser", daemon=True).start()

    @property
    def ended(self) -> str:
        """Why there is no browser any more; empty while there is one."""
        return self._end

    def listen(self, session: str, listener: Listener | None) -> None:
        """Give a session's events to a listener; None ends that."""
        with self._lock:
            if listener is None:
                self._listeners.pop(session, None)
            else:
                self._listeners[session] = listener

    def send(self, method: str, params: Mapping[str, Any] | None = None, session: str = "") -> Answer:
        """Send a command; they are carried out in the order of sending."""
        answer: Answer = Future()
        with self._lock:
            if self._end:
                answer.set_exception(BrowserFailure(self._end))
                return answer
            self._num_sent += 1
            message = {"id": self._num_sent, "method": method, "params": params or {}}
            if session:
                message["sessionId"] = session
            self._waiting[self._num_sent] = (method, session, answer)
            data = memoryview(json.dumps(message).encode() + b"\0")
            with suppress(BrokenPipeError):  # the reading side learns of it
                while data:
                    data = data[os.write(self._writing, data) :]
        return answer

    def forget(self, session: str, reason: str) -> None:
        """Fail what a session still waits for."""
        with self._lock:
            found = [number for number, waiting in self._waiting.items() if waiting[1] == session]
            answers = [self._waiting.pop(number)[2] for number in found]
            self._listeners.pop(session, None)
        for answer in answers:
            answer.set_exception(BrowserFailure(reason))

    def close(self) -> None:
        """Hang up: the browser ends, and the reading thread with it."""
        with self._lock, suppress(OSError):
            os.close(self._writing)
            self._writing = -1
            self._end = self._end or "the browser was closed"

    def _read(self) -> None:
        buffer = bytearray()
        while chunk := self._chunk():
            start = len(buffer)
            buffer += chunk
            while (end := buffer.find(b"\0", start)) >= 0:
                self._take(json.loads(buffer[:end]))
                del buffer[: end + 1]
                start = 0
        os.close(self._reading)
        reason = self._on_end()
        with self._lock:
            self._end = self._end or reason
            answers = [answer for _, _, answer in self._waiting.values()]
            self._waiting.clear()
        for answer in answers:
            answer.set_exception(BrowserFailure(self._end))

    def _chunk(self) -> bytes:
        with suppress(OSError):
            return os.read(self._reading, _CHUNK_BYTES)
        return b""

    def _take(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            listener = self._listeners.get(message.get("sessionId", ""))
            method, _, answer = self._waiting.pop(message.get("id", 0), ("", "", None))
        if answer is not None:
            if "error" in message:
                answer.set_exception(BrowserFailure(f"{method}: {message['error'].get('message')}"))
            else:
                answer.set_result(message["result"])
        elif listener is not None and "method" in message:
            listener(message["method"], message["params"])
