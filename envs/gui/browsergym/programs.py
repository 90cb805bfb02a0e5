"""Programs that run BrowserGym: one for each environment, kept for the next one when it is closed."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vlrl.envs.gui.scratch import scratch_folder
from vlrl.foreign.program import ForeignProgram

LINGER_S = 20.0
"""A program without an episode ends after so long, and its browser with it."""
_FOLDER = Path(__file__).parent / "program"


class ProgramKind(NamedTuple):
    """What programs must have in common to serve the same environments."""

    python: str
    args: str
    """JSON of what program/episodes.py opens."""
    pid: int
    """Of the process that started them: a forked child has no use for its parent's."""


_idle: defaultdict[ProgramKind, list[ForeignProgram]] = defaultdict(list)
_lock = threading.Lock()


def kind_of(python: str, args: Mapping[str, Any]) -> ProgramKind:
    """The kind of programs of an interpreter that open with `args`."""
    return ProgramKind(python, json.dumps(dict(args), sort_keys=True), os.getpid())


def take(kind: ProgramKind) -> ForeignProgram:
    """A program of one's own: an idle one, or a new one.

    Raises:
        ConfigError: if there is no such interpreter, or BrowserGym or a package of tasks is not installed.
    """
    with _lock:
        while _idle[kind]:
            program = _idle[kind].pop()
            if program.alive:
                return program
    args = {**json.loads(kind.args), "folder": str(scratch_folder("browsergym"))}
    return ForeignProgram("gui/browsergym", kind.python, _FOLDER, "BrowserGym", args, LINGER_S, _remedy)


def give_back(kind: ProgramKind, program: ForeignProgram) -> None:
    """Keep a program whose episode is over for whoever comes next."""
    with _lock:
        _idle[kind].append(program)


def _remedy(error: str, python: str) -> str:
    if missing := re.search(r"No module named 'browsergym(?:\.(\w+))?'", error):
        wanted = f"browsergym-{missing[1] or 'core'}"
        return (
            f"{python} has no {wanted}; install it in an environment of its own (python3 -m venv DIR; "
            f"DIR/bin/pip install {wanted}) and give its interpreter as the option python"
        )
    return error or "the program ended before it was ready; what it printed is above"
