"""One run at a time in a run's folder: a lock that names its holder, and that ends with its process.

It is the kernel's (flock), so a killed run leaves none behind, and no age of a file has to be believed. Linux
passes it on to the server of an NFS, so it holds between hosts too, unless the file system is mounted with
`nolock` or `local_lock`, or cannot lock at all: then it holds on one host (or not at all), and whoever takes
it is warned of a holder on another host that did not take its name out of the file.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError, ResourceError

LOCK_FILE = "run.lock"
"""A file in the run's folder: the holder's `pid`, `host` and `started` (UTC) as JSON; empty without one."""

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


@contextmanager
def run_lock(run_dir: Path, tell: Callable[[str, str], None] = lambda event, text: None) -> Iterator[None]:
    """Hold the lock of a run's folder, which is made if need be, for the length of a block.

    Args:
        run_dir: the run's folder.
        tell: called with an event's name and a sentence about what the lock cannot promise.

    Raises:
        ConfigError: naming the process that holds it.
        ResourceError: if the folder cannot be written.
    """
    path = run_dir / LOCK_FILE
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise ResourceError(f"{run_dir}: {error.strerror}; a run must write there: check run.dir") from error
    try:
        _lock(file, run_dir, tell)
        _write(file, {"pid": os.getpid(), "host": socket.gethostname(), "started": _now()})
        try:
            yield
        finally:
            _write(file, None)
    finally:
        os.close(file)


def require_unlocked(run_dir: Path) -> None:
    """Raise ConfigError if a process holds the lock: its run uses the folder."""
    if (run_dir / LOCK_FILE).is_file():
        with run_lock(run_dir):
            return


def _lock(file: int, run_dir: Path, tell: Callable[[str, str], None]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(
            f"another run is active in {run_dir}: {_holder(file)}; wait for its end, stop it, or give "
            "another run.name"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        tell(
            "run_not_locked",
            f"the file system of {run_dir} does not support locks: do not start a second run in it",
        )
    left = _read(file)
    if left and left.get("host") != socket.gethostname():
        tell(
            "run_lock_left",
            f"{_holder(file)} did not end cleanly in {run_dir}; if the file system is mounted without locks "
            "between hosts (nolock, local_lock), make sure that it is gone",
        )


def _holder(file: int) -> str:
    held = _read(file)
    if not held:  # it has the lock and has not written its name yet
        return "a process that has just begun"
    return f"process {held.get('pid')} on {held.get('host')}, since {held.get('started')}"


def _read(file: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(file, 4096, 0) or b"{}")
    except ValueError:  # torn: its writer was killed
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: int, holder: dict[str, Any] | None) -> None:
    os.ftruncate(file, 0)
    if holder is not None:
        os.pwrite(file, (json.dumps(holder) + "\n").encode(), 0)
        os.fsync(file)  # other hosts that share the folder read it


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
