"""A program in another interpreter, which has a package that cannot live beside vlrl's own.

    ForeignProgram(…) ──► lines of JSON ──► python -P interpreter/main.py: episodes.py of the adapter's folder

It ends when nothing is played for some time, or with this process; what it has started ends with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.foreign.interpreter.marked import VARIABLE, kill_marked

_PATIENCE_S = 5.0
"""A program that answers nothing for so long hangs."""
_MAIN = Path(__file__).parent / "interpreter" / "main.py"


class Gone(ConnectionError):
    """The program has ended."""


class ForeignProgram:
    """One program. Threads may ask at the same time, and wait for their own answers only.

    Attributes:
        mark: a word in the environment of the program and of all that it has started.
    """

    def __init__(
        self,
        adapter: str,
        python: str,
        folder: Path,
        name: str,
        args: Mapping[str, Any],
        linger_s: float,
        remedy: Callable[[str, str], str],
    ) -> None:
        """Start it and wait until the environment is loaded.

        Args:
            adapter: who asks, for messages.
            python: interpreter.
            folder: of the adapter's episodes.py.
            name: what it loads.
            args: with these.
            linger_s: it stays for so long after its last episode.
            remedy: gives (why it does not load, the interpreter) in the words of an error.

        Raises:
            ConfigError: if there is no such interpreter, or the environment does not load.
        """
        # -P: the program's folder must not come before the packages that it imports.
        command = [python, "-P", str(_MAIN), str(folder), name, json.dumps(dict(args)), str(linger_s)]
        self._name, self._numbers, self._lock = f"{adapter}: {name}", count(), threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self.mark, pipe = uuid.uuid4().hex, subprocess.PIPE
        try:
            # A session of its own: killed with a group, it could not end what it has started. It ends when
            # its input does.
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
            raise ConfigError(f"{adapter}: python={python!r} cannot be run: {error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        said = json.loads(self._output.readline() or "{}")
        if not said.get("ready"):
            self._end()
            raise ConfigError(f"{self._name} is not loaded: {remedy(said.get('error', ''), python)}")
        threading.Thread(target=self._listen, name=f"{adapter} answers", daemon=True).start()

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

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
                self.kill()
            raise TimeoutError(f"{self._name}: no answer to {method} in {timeout_s:g} s") from None

    def kill(self) -> None:
        """End it at once; whoever waits for an answer is told that it is gone."""
        self._process.kill()

    def _listen(self) -> None:
        for line in self._output:
            said = json.loads(line)
            with self._lock:
                future = self._waiting.pop(said["number"])
            if "error" in said:
                future.set_exception(RuntimeError(f"{self._name}: {said['error']}"))
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
        kill_marked(self.mark)  # what it could not end itself

    def _gone(self) -> Gone:
        return Gone(f"{self._name}: its program has ended with code {self._process.poll()}")
