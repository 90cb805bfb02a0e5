"""Sizes and SHA-256 digests of a folder's files: written with them, compared before any is believed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

DIGESTS_FILE = "files.json"
"""{"path below the folder": {"size": bytes, "sha256": hexadecimal}} of every file but itself."""

NUM_THREADS = 4
"""Files that are read at once; hashing lets other threads run."""


def write_digests(folder: Path) -> None:
    """Write DIGESTS_FILE, of everything that lies in the folder now."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = _of_each(_digest, paths)
    found = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": digest}
        for path, digest in zip(paths, digests, strict=True)
    }
    (folder / DIGESTS_FILE).write_text(json.dumps(found, indent=1), encoding="utf-8")


def damage(folder: Path) -> str:
    """What is wrong with the folder's files in words, the first of it; "" if they are what was written.

    Files that DIGESTS_FILE does not name are not looked at.
    """
    try:
        text = (folder / DIGESTS_FILE).read_text(encoding="utf-8")
        named = {name: (int(found["size"]), str(found["sha256"])) for name, found in json.loads(text).items()}
    except OSError as error:
        return f"{DIGESTS_FILE} could not be read ({error.strerror})"
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        return f"{DIGESTS_FILE} is damaged ({type(error).__name__}: {error})"
    for name, (size, _) in named.items():  # quick, and says more than a digest
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size:
            return f"{name} has {path.stat().st_size} bytes, {size} were written"
    try:
        digests = _of_each(_digest, [folder / name for name in named])
        for (name, (_, expected)), digest in zip(named.items(), digests, strict=True):
            if digest != expected:
                return f"{name} is not what was written: its SHA-256 is another"
    except OSError as error:
        return f"{error.filename} could not be read ({error.strerror})"
    return ""


def sync(folder: Path) -> None:
    """Have everything in the folder on the disk, so that a rename that follows cannot be there before it."""
    paths = [folder, *folder.rglob("*")]
    for _ in _of_each(sync_entry, paths):
        pass


def sync_entry(path: Path) -> None:
    """Have one file's content, or a folder's list of names, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _of_each(work: Callable[[Path], T], paths: Iterable[Path]) -> Iterator[T]:
    """What `work` returns for each path, in order."""
    with ThreadPoolExecutor(NUM_THREADS) as threads:
        yield from threads.map(work, paths)
