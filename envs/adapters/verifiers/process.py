"""The program that runs `verifiers`: started when needed, shared by the episodes of one environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from vlrl.envs.adapters.verifiers.program.marked import VARIABLE, kill_marked
from vlrl.errors import ConfigError

_PATIENCE_S = 5.0
"""A program that answers nothing for so long hangs."""
_PROGRAM = Path(__file__).parent / "program" / "main.py"


class Gone(ConnectionError):
    """The program has ended."""


class VerifiersProcess:
    """One program for one environment; it ends when nothing is played for some time, or with this process.

    Threads may ask at the same time, and wait for their own answers only.
    """

    def __init__(self, python: str, name: str, args: Mapping[str, Any], linger_s: float) -> None:
        """Start it and wait until the environment is loaded.

        Args:
            python: interpreter.
            name: the environment's id, or a file.
            args: of the environment.
            linger_s: it stays for so long after its last episode.

        Raises:
            ConfigError: if there is no such interpreter or environment, or verifiers is not installed.
        """
        file = Path(name.split(".py", 1)[0] + ".py")
        if ".py" in name and not file.is_file():
            raise ConfigError(f"verifiers: {file} does not exist (looked in {Path.cwd()})")
        # -P: the program's folder must not come before the packages that it imports.
        command = [python, "-P", str(_PROGRAM), name, json.dumps(dict(args)), str(linger_s)]
        self._name, self._numbers, self._lock = name, count(), threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self.mark, pipe = uuid.uuid4().hex, subprocess.PIPE
        try:
            # A session of its own: killed with a group, it could not end the servers that it has started. It
            # ends when its input does.
            self._process = subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                text=True,
                encoding="utf-8",
                env={**os.environ, VARIABLE: self.mark},
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(f"verifiers: python={python!r} cannot be run: {error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        said = json.loads(self._output.readline() or "{}")
        if not said.get("ready"):
            self._end()
            raise ConfigError(f"verifiers: {name} is not loaded: {_remedy(said.get('error', ''), python)}")
        threading.Thread(target=self._listen, name="verifiers answers", daemon=True).start()

    @property
    def alive(self) -> bool:
        """False once it has ended."""
        return self._process.poll() is None

    def ask(self, method: str, timeout_s: float, **request: Any) -> Any:
        """Ask and wait for the answer.

        Raises:
            TimeoutError: if it takes longer than `timeout_s`; a program that answers nothing else is ended.
            Gone: if the program ends, or has ended.
            RuntimeError: if the environment raised; the message is the environment's.
        """
        future: Future[Any] = Future()
        with self._lock:
            if not self.alive:
                raise self._gone()
            number = next(self._numbers)
            self._waiting[number] = future
            try:
                self._input.write(json.dumps({"number": number, "method": method, **request}) + "\n")
                self._input.flush()
            except OSError as error:
                del self._waiting[number]
                raise self._gone() from error
        try:
            return future.result(timeout_s)
        except FutureTimeout:
            if method != "ping":
                with suppress(TimeoutError):
                    self.ask("ping", min(timeout_s, _PATIENCE_S))
            else:
                self._process.kill()
            raise TimeoutError(f"verifiers: {self._name}: no answer to {method} in {timeout_s:g} s") from None

    def _listen(self) -> None:
        for line in self._output:
            said = json.loads(line)
            with self._lock:
                future = self._waiting.pop(said["number"])
            if "error" in said:
                future.set_exception(RuntimeError(f"verifiers: {self._name}: {said['error']}"))
            else:
                future.set_result(said["value"])
        self._end()
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(self._gone())

    def _end(self) -> None:
        """Close what leads to it, and let the system forget it."""
        self._output.close()
        with suppress(OSError):  # what it has not read is lost with it
            self._input.close()
        self._process.wait()
        kill_marked(self.mark)  # servers of tools that it could not end itself

    def _gone(self) -> Gone:
        return Gone(f"verifiers: {self._name}: its program has ended with code {self._process.poll()}")


_running: dict[tuple[str, str, str, float], VerifiersProcess] = {}
_starting = threading.Lock()


def process_of(python: str | None, name: str, args: Mapping[str, Any], linger_s: float) -> VerifiersProcess:
    """The program of an environment: the one that runs, or a new one.

    Raises:
        ConfigError: as VerifiersProcess does.
    """
    key = (python or sys.executable, name, json.dumps(dict(args), sort_keys=True), linger_s)
    with _starting:
        if key not in _running or not _running[key].alive:
            _running[key] = VerifiersProcess(*key[:2], args, linger_s)
        return _running[key]


def _remedy(error: str, python: str) -> str:
    if "No module named 'verifiers'" in error:
        return (
            f"{python} has no verifiers; pip install 'vlrl[verifiers]', or, as it wants older versions of "
            "some packages than others do, install verifiers in an environment of its own and give its "
            "interpreter as the option python"
        )
    return error or "the program ended before it was ready; what it printed is above"
