"""Temporary folders that are removed even if their owner was killed: by the next process that makes one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def scratch_folder(kind: str) -> Path:
    """Make a folder vlrl-KIND-PID-…, and remove those of processes that are no more.

    Its owner removes it at the end; one that was killed could not.
    """
    for old in Path(tempfile.gettempdir()).glob(f"vlrl-{kind}-*-*"):
        owner = old.name.split("-")[2]
        if owner.isdigit() and not _runs(int(owner)):
            shutil.rmtree(old, ignore_errors=True)  # another user's stays
    return Path(tempfile.mkdtemp(prefix=f"vlrl-{kind}-{os.getpid()}-"))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
