"""A machine that does other things as well."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_machine(num_processes: int = 2) -> Iterator[None]:
    """Processes that never rest, so that the threads of one operation do not arrive together.

    They are a little less urgent than what is tested: as its equals they make it twenty times as slow, for
    its threads wait for each other at every operation.
    """
    code = "import os\nos.nice(5)\nwhile True: pass"
    children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(num_processes)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()
