"""A machine that does other things as well."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_machine(num_processes: int = 2, *, niceness: int = 5) -> Iterator[None]:
    """Processes that never rest, so that the threads of one operation do not arrive together.

    They are to be a little less urgent than what is tested: as its equals they make it twenty times as slow,
    for its threads wait for each other at every operation. `niceness` is theirs, at most 19.
    """
    # From outside: Linux 6.18 goes on treating a process that lowered itself as it ran as urgent.
    spin = ["nice", "-n", str(niceness), sys.executable, "-c", "while True: pass"]
    children = [subprocess.Popen(spin) for _ in range(num_processes)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()
