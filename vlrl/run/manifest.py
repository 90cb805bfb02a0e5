"""The manifest of a checkpoint: the size and SHA-256 of every file, and whether the files still are these.

Sizes are written with the checkpoint, which is whole from then on; digests are added while the run goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from vlrl.errors import CheckpointError
from vlrl.storage.stopping import StopFn, Stopped

T = TypeVar("T")

MANIFEST_FILE = "files.json"
"""{"path below the folder": {"size": bytes, "sha256": hexadecimal}} of every file but itself.

Without "sha256" until the digests are made.
"""

PARTS = ("model/", "state/")
"""Folders of a checkpoint without whose files it is none: the model, and the ranks' states."""

CHUNK_BYTES = 2**20
"""What is read at once."""

NUM_THREADS = 4
"""Files that are read at once; hashing lets other threads run."""


def write_manifest(folder: Path, written: Mapping[str, int]) -> None:
    """Write MANIFEST_FILE, with sizes, of all that lies in the folder now and of what its writers name.

    Args:
        folder: the checkpoint's.
        written: bytes by path of what other processes wrote: a shared folder's list of names may be late.

    Raises:
        CheckpointError: if no file of the model or of the ranks' states is among them.
    """
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    found = {name: {"size": (folder / name).stat().st_size} for name in sorted(names | written.keys())}
    if lacking := _lacking(found):
        raise CheckpointError(f"{folder} would be no checkpoint: {lacking}; report this with your config")
    (folder / MANIFEST_FILE).write_text(json.dumps(found, indent=1), encoding="utf-8")


def add_digests(folder: Path, stopped: StopFn = lambda: False) -> None:
    """Complete the manifest of a checkpoint that is whole, if it is not complete yet.

    Args:
        folder: the checkpoint's; nobody writes to it meanwhile.
        stopped: asked every CHUNK_BYTES.

    Raises:
        Stopped: if it says so; the manifest is as it was.
    """
    file = folder / MANIFEST_FILE
    before = file.read_text(encoding="utf-8")
    found = json.loads(before)
    if not has_digests(found):
        complete = {n: {**entry, "sha256": _digest(folder / n, stopped)} for n, entry in found.items()}
        aside = folder / f".{MANIFEST_FILE}.part"
        aside.write_text(json.dumps(complete, indent=1), encoding="utf-8")
        sync_entry(aside)
        if file.read_text(encoding="utf-8") != before:  # the step was saved again
            raise Stopped
        os.replace(aside, file)
        sync_entry(folder)


def has_digests(manifest: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether a manifest has the SHA-256 of every file."""
    return all("sha256" in entry for entry in manifest.values())


def damage(folder: Path) -> str:
    """What is wrong with the folder's files in words, the first of it; "" if they are what was written.

    Files that MANIFEST_FILE does not name are not looked at.
    """
    if wrong := missing_files(folder):  # quick, and says more than a digest
        return wrong
    entries = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    expected = {name: entry["sha256"] for name, entry in entries.items() if "sha256" in entry}
    try:
        digests = _of_each(_digest, [folder / name for name in expected])
        for name, digest in zip(expected, digests, strict=True):
            if digest != expected[name]:
                return f"{name} is not what was written: its SHA-256 is another"
    except OSError as error:
        return f"{error.filename} could not be read ({error.strerror})"
    return ""


def missing_files(folder: Path) -> str:
    """What is wrong with the folder's files by the sizes in its manifest; "" if nothing is."""
    try:
        text = (folder / MANIFEST_FILE).read_text(encoding="utf-8")
        sizes = {name: int(entry["size"]) for name, entry in json.loads(text).items()}
    except OSError as error:
        return f"{MANIFEST_FILE} could not be read ({error.strerror})"
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        return f"{MANIFEST_FILE} is damaged ({type(error).__name__}: {error})"
    if lacking := _lacking(sizes):
        return lacking
    for name, size in sizes.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size:
            return f"{name} has {path.stat().st_size} bytes, {size} were written"
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


def _digest(path: Path, stopped: StopFn = lambda: False) -> str:
    digest, buffer = hashlib.sha256(), memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            if stopped():
                raise Stopped
            digest.update(buffer[:count])
    return digest.hexdigest()


def _of_each(work: Callable[[Path], T], paths: Iterable[Path]) -> Iterator[T]:
    """What `work` returns for each path, in order."""
    with ThreadPoolExecutor(NUM_THREADS) as threads:
        yield from threads.map(work, paths)
