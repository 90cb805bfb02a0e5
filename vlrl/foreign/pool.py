"""Programs in other interpreters, each for one user at a time, kept for the next one."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vlrl.foreign.program import ForeignProgram


class ProgramKind(NamedTuple):
    """What programs must have in common to serve the same users."""

    python: str
    args: str
    """JSON of what the adapter's episodes.py opens."""
    pid: int
    """Of the process that started them: a forked child has no use for its parent's."""


def kind_of(python: str, args: Mapping[str, Any]) -> ProgramKind:
    """The kind of programs of an interpreter that open with `args`."""
    return ProgramKind(python, json.dumps(dict(args), sort_keys=True), os.getpid())


class ProgramPool:
    """One adapter's programs."""

    def __init__(
        self,
        adapter: str,
        folder: Path,
        name: str,
        linger_s: float,
        remedy: Callable[[str, str], str],
        own_args: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """Take what `ForeignProgram` takes; `own_args` gives arguments that each program has for itself."""
        self._adapter, self._folder, self._name = adapter, folder, name
        self._linger_s, self._remedy, self._own_args = linger_s, remedy, own_args
        self._idle: defaultdict[ProgramKind, list[ForeignProgram]] = defaultdict(list)
        self._lock = threading.Lock()

    def take(self, kind: ProgramKind) -> ForeignProgram:
        """A program of one's own: an idle one, or a new one.

        Raises:
            ConfigError: if there is no such interpreter, or it does not have the package.
        """
        with self._lock:
            while self._idle[kind]:
                program = self._idle[kind].pop()
                if program.alive:
                    return program
        args = {**json.loads(kind.args), **self._own_args()}
        return ForeignProgram(
            self._adapter, kind.python, self._folder, self._name, args, self._linger_s, self._remedy
        )

    def give_back(self, kind: ProgramKind, program: ForeignProgram) -> None:
        """Keep a program for whoever comes next."""
        with self._lock:
            self._idle[kind].append(program)
