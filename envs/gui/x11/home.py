"""The user's files, read from outside.

An agent can write anything there, links to this machine's files among it. So every path is walked a folder at
a time from a handle on the home that was opened before any app ran, no link is followed, only plain files are
read, and not too much of them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

MOST_BYTES = 1 << 22
MOST_ENTRIES = 2000
_MOST_DEPTH = 12
FOLDER, OTHER = b"\0folder", b"\0other"
"""Stand for what is no plain file: a folder; a link, a pipe, a file too large or not to be read."""

Tree = Mapping[str, bytes]
"""Path below the home → content, FOLDER or OTHER."""


def read_home(home: int) -> Tree:
    """All files whose path has no part that begins with a dot: those belong to the apps.

    Args:
        home: a handle on the folder.
    """
    found: dict[str, bytes] = {}
    _walk(home, "", found, _MOST_DEPTH)
    return found


def changes(before: Tree, after: Tree) -> list[str]:
    """Paths that were added, removed or have other content, in order."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _walk(folder: int, prefix: str, found: dict[str, bytes], depth: int) -> None:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for name in names:
        if len(found) >= MOST_ENTRIES:
            return
        path = prefix + name
        found[path] = OTHER
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:  # a link, a socket, or gone
            continue
        try:
            found[path] = _content(handle)
            if found[path] is FOLDER and depth:
                _walk(handle, path + "/", found, depth - 1)
        except OSError:  # taken away while it was read
            continue
        finally:
            os.close(handle)


def _content(handle: int) -> bytes:
    status = os.fstat(handle)
    if stat.S_ISDIR(status.st_mode):
        return FOLDER
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        return OTHER
    data = b""
    while len(data) <= MOST_BYTES and (more := os.read(handle, MOST_BYTES)):
        data += more
    return data if len(data) <= MOST_BYTES else OTHER
