"""A worker that calls rewards under watch: `vlrl reward test` runs it in the place of the pool's own.

It writes a line of JSON for whatever a call does beside returning: {"what", "detail"}. What ends the process
leaves the lines that were written before.

    changes    an argument is not what it was before the call
    batch      a batched call that did not return one value a sample
    blocks     an async call that held the event loop, where it ought to wait
    threads    threads that run on after the call
    network, files, processes    by the interpreter's audit events
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import pickle
import re
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vlrl.foreign.failure import Failure
from vlrl.foreign.worker_process import join_driver
from vlrl.scoring.functions import RewardFunction
from vlrl.scoring.worker import Outcome, perform, serve

BLOCKED_S = 0.25
"""An event loop that did not turn for so long was blocked; imports at a first call do so too."""
_BEAT_S = 0.01
_NUMBERS = re.compile(r"[-_]?[0-9]+")

_NETWORK = frozenset({"socket.connect", "socket.sendto", "socket.bind", "socket.getaddrinfo"})
_PROCESSES = frozenset(
    {"os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system", "subprocess.Popen", "pty.spawn"}
)
_FILES = frozenset(
    {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "shutil.move"}
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Notes:
    """Writes lines; each kind of thing once with each detail."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._seen: set[tuple[str, str]] = set()
        self.listening = False

    def add(self, what: str, detail: str) -> None:
        """Note what a call did."""
        if (what, detail) not in self._seen:
            self._seen.add((what, detail))
            line = json.dumps({"what": what, "detail": detail}) + "\n"
            os.write(self._file, line.encode())

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook; it must be quick, and must not raise."""
        if not self.listening:
            return
        if event == "open":
            path, mode, flags = (*arguments, None, None)[:3]
            if isinstance(path, str | bytes) and _writes(mode, flags) and os.fsdecode(path) != os.devnull:
                self._noted("files", f"opens {os.fsdecode(path)} for writing")
        elif event in _NETWORK:
            if (where := _address(event, arguments)) is not None:
                self._noted("network", f"{event} {where}")
        elif event in _PROCESSES:
            self._noted("processes", f"{event} {str(arguments[0])[:80] if arguments else ''}".strip())
        elif event in _FILES:
            self._noted("files", f"{event} {str(arguments[0])[:80]}")

    def _noted(self, what: str, detail: str) -> None:
        self.listening = False  # what is written here is not the reward's
        try:
            self.add(what, detail)
        finally:
            self.listening = True


def main() -> None:
    """Serve as the pool's worker does; own arguments: the shared page, the file of notes."""
    channel, (page_fd, path) = join_driver()
    notes = Notes(path)
    sys.addaudithook(notes.audit)

    def performer(
        function: RewardFunction | Failure, completion: Any, answer: Any, context: Mapping[str, Any]
    ) -> Outcome:
        if isinstance(function, Failure):
            return function
        return _watched(function, completion, answer, context, notes)

    serve(channel, page_fd, performer)


def _watched(
    function: RewardFunction, completion: Any, answer: Any, context: Mapping[str, Any], notes: Notes
) -> Outcome:
    before = {name: _written(value) for name, value in _named(completion, answer, context).items()}
    threads = set(threading.enumerate())
    notes.listening = True
    try:
        outcome = _loop_watched(function, completion, answer, context, notes)
    finally:
        notes.listening = False
    for name, value in _named(completion, answer, context).items():
        if before.get(name) != _written(value):
            notes.add("changes", name)
    for thread in set(threading.enumerate()) - threads:
        if thread.is_alive():
            notes.add("threads", _NUMBERS.sub("", thread.name))
    is_batch = function.declared.batched and len(completion) > 1
    if is_batch and isinstance(outcome, Failure) and "returned " in outcome.reason:
        notes.add("batch", outcome.reason.removeprefix("ValueError: "))
    return outcome


def _loop_watched(
    function: RewardFunction, completion: Any, answer: Any, context: Mapping[str, Any], notes: Notes
) -> Outcome:
    """`perform`, and for what is async how long the event loop stood still."""
    if not function.is_async:
        return perform(function, completion, answer, context)
    stood_still, turned = 0.0, 0.0

    def turn() -> None:
        nonlocal stood_still, turned
        now = time.monotonic()
        stood_still, turned = max(stood_still, now - turned - _BEAT_S), now

    async def beating() -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            turn()

    async def invoke(returned: Any) -> Any:
        nonlocal turned
        turned = time.monotonic()
        beat = asyncio.ensure_future(beating())
        try:
            return await returned
        finally:
            turn()
            beat.cancel()

    def call(completion: Any, answer: Any, context: Mapping[str, Any]) -> Any:
        returned = function.invoke(completion, answer, context)
        return invoke(returned) if inspect.isawaitable(returned) else returned

    outcome = perform(_with(function, call), completion, answer, context)
    if stood_still > BLOCKED_S:
        notes.add("blocks", "")
    return outcome


def _with(function: RewardFunction, call: Any) -> RewardFunction:
    return replace(function, invoke=call)


def _named(completion: Any, answer: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    named = {"answer": answer, **context}
    return named if isinstance(completion, str) else {"completion": completion, **named}


def _written(value: Any) -> bytes | None:
    """Bytes that differ if a value was changed; None where it cannot be pickled."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # a stranger's classes
        return None


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


def _address(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Where a socket goes; None for a socket of this machine's own file system."""
    if event == "socket.getaddrinfo":
        return ":".join(str(part) for part in arguments[:2])
    address = arguments[1] if len(arguments) > 1 else None
    return None if isinstance(address, str | bytes) else ":".join(map(str, address or ()))


def read_notes(path: Path) -> dict[str, list[str]]:
    """What → details, of all workers that wrote to a file; no file is no notes."""
    found: dict[str, dict[str, None]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        note = json.loads(line)
        found.setdefault(note["what"], {})[note["detail"]] = None
    return {what: list(details) for what, details in found.items()}


if __name__ == "__main__":
    main()
