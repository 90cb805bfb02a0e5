"""Put files where the apps see them, as theirs: by a handle on the folder, without a process inside."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

_MTIME_NS = 1_600_000_000 * 10**9  # what a file manager shows is the same every time
_libc = ctypes.CDLL(None, use_errno=True)


def write_files(folder: int, files: Mapping[str, bytes]) -> None:
    """Write path → content; a path that ends in / is a folder. Folders on the way are made.

    Args:
        folder: a handle on a folder in which nothing runs yet that could put links there.
        files: paths below it.

    Raises:
        ValueError: for a path that leads out of it.
    """
    for path in files:
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"the path {path!r} leads out of the folder")
    made: set[str] = set()
    with _as_owner_of(folder):
        for path, content in files.items():
            *parents, name = path.split("/")
            for count in range(1, len(parents) + 1):
                parent = "/".join(parents[:count])
                if parent not in made:
                    with suppress(FileExistsError):  # the folder of an app's profile
                        os.mkdir(parent, 0o755, dir_fd=folder)
                    made.add(parent)
            if name:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                handle = os.open(path, flags, 0o644, dir_fd=folder)
                try:
                    with open(handle, "wb", closefd=False) as file:
                        file.write(content)
                    os.utime(handle, ns=(_MTIME_NS, _MTIME_NS))
                finally:
                    os.close(handle)
        for parent in made:
            os.utime(parent, ns=(_MTIME_NS, _MTIME_NS), dir_fd=folder)


@contextmanager
def _as_owner_of(folder: int) -> Iterator[None]:
    """Root's files have no owner in the box; for this thread's calls, be the one who owns the folder."""
    status = os.fstat(folder)
    if os.geteuid() != 0 or status.st_uid == 0:
        yield
        return
    gid, uid = _libc.setfsgid(status.st_gid), _libc.setfsuid(status.st_uid)
    try:
        yield
    finally:
        _libc.setfsuid(uid)
        _libc.setfsgid(gid)
