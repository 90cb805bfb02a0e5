"""The weights' files in shared memory: each belongs to a process, and what a killed one left is removed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from uuid import uuid4

PREFIX = "vlrl-weights-"


def new_path(folder: Path) -> Path:
    """A file name that names its owner."""
    return folder / f"{PREFIX}{os.getpid()}-{uuid4().hex[:8]}"


def hold(path: Path) -> int:
    """Mark the file as in use for as long as this process lives, or until the descriptor is closed."""
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def orphans(folder: Path) -> list[Path]:
    """Files whose process is gone.

    Its number alone is not enough: it may be another container's. Nor is the lock alone: a file is
    there a moment before it is locked.
    """
    return [
        path for path in sorted(folder.glob(f"{PREFIX}*")) if not _has_process(path) and not _is_held(path)
    ]


def _has_process(path: Path) -> bool:
    number = path.name.removeprefix(PREFIX).partition("-")[0]
    return Path("/proc", number).exists()


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # it has gone, or is another user's
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
