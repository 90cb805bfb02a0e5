"""A machine that does other things as well."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_machine(num_processes: int = 2) -> Iterator[None]:
    """Processes that never rest, so that the threads of one operation do not arrive together."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(num_processes)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()
