"""Which processes there are, whoever starts and ends meanwhile."""

from __future__ import annotations

import psutil


def descendants(pid: int) -> list[int]:
    """A process and all that descend from it."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return [pid]
