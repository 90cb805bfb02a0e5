"""Arrays on disk by key: mapped when read, written whole or not at all, the least used dropped at a limit.

One file an entry: a head of one or more pages (magic, length, checksum, JSON), then the array's bytes. The
checksum finds what a crash or a full disk left half-written, so nothing needs to be flushed. Any number of
processes may share a folder: an entry appears by renaming, and one that is dropped stays readable to whoever
has it mapped.
"""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from vlrl.types import ByteArray

_MAGIC = b"vlrlmed1"
_PAGE = 4096
_FIXED = 20  # magic, 4 bytes of JSON length, 8 of checksum
_STALE_S = 3600.0
"""A temporary file this old belongs to no living writer."""


class DiskCache:
    """A folder of uint8 arrays with a little JSON each.

    After a write the limit is enforced for what this process knows: it looks at the folder again whenever it
    has itself written a sixteenth of the limit, so p processes overshoot by at most p/16 of it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._unseen_bytes = max_bytes  # written since the folder was last looked at; look at once
        self._lock = threading.Lock()
        self._broken = max_bytes == 0

    def get(self, key: str) -> tuple[dict[str, Any], ByteArray] | None:
        """(the entry's JSON, its array mapped read-only); None if there is none. A broken one is removed."""
        if not self._max_bytes:
            return None
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                found = _read(file.read(_PAGE), path)
            if found is None:
                path.unlink(missing_ok=True)
            else:
                os.utime(path)  # what "least recently used" goes by
        except OSError:
            return None
        return found

    def put(self, key: str, meta: Mapping[str, Any], array: ByteArray) -> bool:
        """Store an array [any shape] uint8 under a key; False if it is not kept.

        A disk that is full or cannot be written turns the cache off for this process, with one warning.
        """
        if self._broken or array.nbytes + _PAGE > self._max_bytes:
            return False
        array = np.ascontiguousarray(array)
        head = _head(meta, array)
        path = self._path(key)
        temporary = path.with_name(f"tmp-{os.urandom(8).hex()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(temporary, "xb") as file:
                    file.write(head)
                    file.write(array.reshape(-1).data)
                temporary.rename(path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            self._broken = True
            warnings.warn(
                f"media are no longer cached in {self._folder}: {error}; free disk space, or set "
                "media.cache_dir to another disk, or media.cache_gib=0 to stop this warning",
                RuntimeWarning,
                stacklevel=2,
            )
            return False
        self._enforce_limit(len(head) + array.nbytes)
        return True

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key

    def _enforce_limit(self, num_bytes: int) -> None:
        with self._lock:
            self._unseen_bytes += num_bytes
            if self._unseen_bytes * 16 < self._max_bytes:
                return
            self._unseen_bytes = 0
            entries = self._entries()
            total = sum(size for _, size, _ in entries)
            if total <= self._max_bytes:
                return
            # What fits a page (hashes, facts about a video) saves a reading for almost nothing: last to go.
            for _, size, path in sorted(entries, key=lambda entry: (entry[1] <= _PAGE, entry)):
                path.unlink(missing_ok=True)
                total -= size
                if total <= self._max_bytes * 15 // 16:  # room for what is written before the next look
                    return

    def _entries(self) -> list[tuple[float, int, Path]]:
        """(last use, bytes, path) of every entry; leftovers of writers that died are removed."""
        found = []
        for path in self._folder.glob("??/*"):
            try:
                status = path.stat()
                if path.name.startswith("tmp-"):
                    if time.time() - status.st_mtime > _STALE_S:
                        path.unlink(missing_ok=True)
                    continue
            except OSError:  # another process dropped it meanwhile
                continue
            found.append((status.st_mtime, status.st_size, path))
        return found


def _head(meta: Mapping[str, Any], array: ByteArray) -> bytes:
    text = json.dumps({"meta": meta, "shape": array.shape}).encode()
    checksum = xxhash.xxh3_64(text)
    checksum.update(array.reshape(-1).data)
    head = _MAGIC + len(text).to_bytes(4, "little") + checksum.digest() + text
    return head.ljust(-(-len(head) // _PAGE) * _PAGE, b"\0")


def _read(head: bytes, path: Path) -> tuple[dict[str, Any], ByteArray] | None:
    """The entry in a file whose first page is given, if every byte of it is as it was written."""
    length = int.from_bytes(head[8:12], "little")
    start = -(-(_FIXED + length) // _PAGE) * _PAGE
    size = path.stat().st_size
    if head[:8] != _MAGIC or start > size:
        return None
    flat = map_file(path, size)
    text = flat[_FIXED : _FIXED + length].tobytes()
    checksum = xxhash.xxh3_64(text)
    checksum.update(flat[start:].data)
    if checksum.digest() != head[12:_FIXED]:
        return None
    content = json.loads(text)
    return content["meta"], flat[start:].reshape(content["shape"])


def map_file(path: Path | str, size: int) -> ByteArray:
    """[size] uint8, a file's bytes, mapped; the array does not keep the file open, as numpy's own would."""
    import torch

    try:
        flat: ByteArray = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8).numpy()
    except RuntimeError as error:
        raise OSError(f"{path} cannot be mapped: {error}") from error
    flat.flags.writeable = False
    return flat
