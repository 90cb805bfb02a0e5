"""Processes known by a variable in their environment: the program and whatever it has started."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

VARIABLE = "VLRL_FOREIGN_PROGRAM"


def kill_marked(mark: str) -> None:
    """Kill every process whose VARIABLE is `mark`, but this one."""
    wanted = f"{VARIABLE}={mark}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        pid = int(environ.parent.name)
        with suppress(OSError):  # ended meanwhile, or somebody else's
            if pid != os.getpid() and wanted in environ.read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
