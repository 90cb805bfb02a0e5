from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from open_files import left_open, open_files


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
    assert left_open(files) == {}
