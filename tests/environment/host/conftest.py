from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def open_files() -> dict[str, str]:
    folder = Path("/proc/self/fd")
    found = {}
    for name in os.listdir(folder):
        try:
            found[name] = os.readlink(folder / name)
        except OSError:  # of the listing itself
            continue
    return found


def children() -> set[int]:
    """Processes that this one started and has not buried, dead or alive."""
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[1] == str(os.getpid()):
                found.add(int(path.name))
    return found


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No test of a host leaves a process or a file descriptor."""
    gc.collect()
    files, processes = open_files(), children()
    yield
    gc.collect()
    assert children() <= processes
    # Threads of earlier tests of this process, Ray's for instance, have files open for a moment.
    end = time.monotonic() + 60
    while (left := open_files().items() - files.items()) and time.monotonic() < end:
        time.sleep(0.05)
    assert {name for name, _ in left} <= files.keys(), left
