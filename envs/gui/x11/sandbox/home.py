"""The user's files, read from outside.

An agent can write anything there, links to this machine's files among it. So every path is walked a folder at
a time from a handle on the home that was opened before any app ran, no link is followed, only plain files are
read, and not too much of them, one by one and in all.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterable, Mapping

MOST_BYTES, MOST_BYTES_IN_ALL = 1 << 22, 1 << 25
MOST_ENTRIES, MOST_LOOKED_AT = 2000, 20_000
"""Of files and folders that count, and of names, hidden ones included."""
_MOST_DEPTH = 12
_OPENED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER, OTHER = b"\0folder", b"\0other"
"""Stand for what is not a plain file: a folder; a link, a pipe, a file too large or not to be read."""
EXECUTABLE = "//x"
"""What is added to a plain file's path for an entry of its own, empty: its owner may execute it."""

Tree = Mapping[str, bytes]
"""Path below the home → content, FOLDER or OTHER."""


def read_home(home: int) -> Tree:
    """All files whose path has no part that begins with a dot: those belong to the apps.

    A file's holes count as its content does: a disk of 32 MiB has room for any number of sparse files. Those
    that find no room any more are OTHER, which no task's file is.

    Args:
        home: a handle on the folder.
    """
    reading = _Reading()
    reading.walk(home, "", _MOST_DEPTH)
    return reading.found


def read_app_files(home: int, paths: Iterable[str]) -> Tree:
    """Files of apps, by name; those that are not there are left out.

    Args:
        home: a handle on the folder.
        paths: below it.
    """
    reading = _Reading()
    for path in paths:
        reading.read(home, path)
    return reading.found


def changes(before: Tree, after: Tree) -> list[str]:
    """Paths that were added, removed or have other content, in order."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


class _Reading:
    """One reading of the home, and what is left of its bounds."""

    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}
        self._bytes_left, self._names_left = MOST_BYTES_IN_ALL, MOST_LOOKED_AT

    def walk(self, folder: int, prefix: str, depth: int) -> None:
        """Read a folder, in the order of names."""
        for name in self._names(folder):
            if len(self.found) >= MOST_ENTRIES:
                return
            path = prefix + name
            self.found[path] = OTHER
            try:
                handle = os.open(name, _OPENED, dir_fd=folder)
            except OSError:  # a link, a socket, or gone
                continue
            try:
                self.found[path] = self._content(handle)
                if self.found[path] is not FOLDER and os.fstat(handle).st_mode & stat.S_IXUSR:
                    self.found[path + EXECUTABLE] = b""
                if self.found[path] is FOLDER and depth:
                    self.walk(handle, path + "/", depth - 1)
            except OSError:  # taken away while it was read
                continue
            finally:
                os.close(handle)

    def read(self, folder: int, path: str) -> None:
        """Read one file by its path."""
        handle = os.dup(folder)
        try:
            for part in path.split("/"):
                below = os.open(part, _OPENED, dir_fd=handle)
                os.close(handle)
                handle = below
            self.found[path] = self._content(handle)
        except OSError:  # a link, or it is not there
            return
        finally:
            os.close(handle)

    def _names(self, folder: int) -> list[str]:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, self._names_left)]
        self._names_left -= len(names)
        return sorted(name for name in names if not name.startswith("."))

    def _content(self, handle: int) -> bytes:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            return FOLDER
        most = min(MOST_BYTES, self._bytes_left)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return OTHER
        data = b""
        while len(data) <= most and (more := os.read(handle, most + 1 - len(data))):
            data += more
        self._bytes_left -= min(len(data), most)
        return data if len(data) <= most else OTHER
