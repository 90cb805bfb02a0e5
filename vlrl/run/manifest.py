"""The manifest of a checkpoint: the size and SHA-256 of every file, and whether the files still are these."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from vlrl.errors import CheckpointError

T = TypeVar("T")

MANIFEST_FILE = "files.json"
"""{"path below the folder": {"size": bytes, "sha256": hexadecimal}} of every file but itself."""

PARTS = ("model/", "state/")
"""Folders of a checkpoint without whose files it is none: the model, and the ranks' states."""

NUM_THREADS = 4
"""Files that are read at once; hashing lets other threads run."""


def write_manifest(folder: Path, written: Mapping[str, int]) -> None:
    """Write MANIFEST_FILE, of everything that lies in the folder now and of what its writers name.

    Args:
        folder: the checkpoint's.
        written: bytes by path of what other processes wrote: a shared folder's list of names may be late.

    Raises:
        CheckpointError: if no file of the model or of the ranks' states is among them.
    """
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    paths = [folder / name for name in sorted(names | written.keys())]
    digests = _of_each(_digest, paths)
    found = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": digest}
        for path, digest in zip(paths, digests, strict=True)
    }
    if lacking := _lacking(found):
        raise CheckpointError(f"{folder} would be no checkpoint: {lacking}; report this with your config")
    (folder / MANIFEST_FILE).write_text(json.dumps(found, indent=1), encoding="utf-8")


def damage(folder: Path) -> str:
    """What is wrong with the folder's files in words, the first of it; "" if they are what was written.

    Files that MANIFEST_FILE does not name are not looked at.
    """
    try:
        text = (folder / MANIFEST_FILE).read_text(encoding="utf-8")
        named = {name: (int(found["size"]), str(found["sha256"])) for name, found in json.loads(text).items()}
    except OSError as error:
        return f"{MANIFEST_FILE} could not be read ({error.strerror})"
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        return f"{MANIFEST_FILE} is damaged ({type(error).__name__}: {error})"
    if lacking := _lacking(named):
        return lacking
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


def _lacking(names: Iterable[str]) -> str:
    """Which part of a checkpoint its manifest has no file of, in words; "" if all are there."""
    absent = [part for part in PARTS if not any(name.startswith(part) for name in names)]
    return f"{MANIFEST_FILE} names no file of {absent[0]}" if absent else ""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _of_each(work: Callable[[Path], T], paths: Iterable[Path]) -> Iterator[T]:
    """What `work` returns for each path, in order."""
    with ThreadPoolExecutor(NUM_THREADS) as threads:
        yield from threads.map(work, paths)
