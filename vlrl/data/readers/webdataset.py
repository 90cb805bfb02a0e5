"""WebDataset: tar shards in which neighbours whose names agree up to the first dot are one record."""

from __future__ import annotations

import io
import json
import tarfile
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from vlrl.data.readers.files import expand
from vlrl.data.readers.media_folder import VIDEO_SUFFIXES
from vlrl.data.readers.record import OpenedFile, Record
from vlrl.errors import DataError
from vlrl.types import IntArray

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
TEXT_SUFFIXES = frozenset({".txt", ".text", ".caption"})
REFUSED = frozenset({".pyd", ".pickle", ".pkl", ".pth", ".pt", ".npy", ".npz"})
"""Python objects: loading them can run code from the archive."""

BLOCK = 512
"""Bytes that everything in an archive is rounded up to."""

WINDOW_CHUNKS = 16
"""Shards that rows are shuffled among: few, as each is a file that the disk must seek in."""


class WebDatasetReader:
    """Records of all shards that a pattern, a brace expression or a folder names.

    A .json member is the record itself, .txt and .cls are columns of that name, images and videos are its
    media: where the record names them, or else all of them in the order of the archive.
    """

    def __init__(self, path: str, image_root: str | None = None) -> None:
        """Read every shard's headers, several shards at a time.

        Args:
            path: train-{000000..000099}.tar, a pattern, or a folder.
            image_root: folder of media outside the archives; each shard's own if not given.

        Raises:
            DataError: for a missing, broken or compressed archive, or one that holds pickled objects.
        """
        files = sorted(Path(path).rglob("*.tar")) if Path(path).is_dir() else expand(path)
        self._shards = [OpenedFile(file) for file in files]
        self._root = Path(image_root) if image_root else None
        with ThreadPoolExecutor(8) as executor:
            self._offsets = list(executor.map(_record_offsets, files))
        self.chunk_sizes = [len(offsets) - 1 for offsets in self._offsets]
        self.window_chunks = WINDOW_CHUNKS
        self._starts = [0, *accumulate(self.chunk_sizes)]

    def __len__(self) -> int:
        """Number of records."""
        return self._starts[-1]

    def __getitem__(self, index: int) -> Record:
        """Record `index`.

        Raises:
            DataError: naming the shard and the key.
        """
        shard = bisect_right(self._starts, index) - 1
        file, offsets = self._shards[shard], self._offsets[shard]
        begin, end = offsets[index - self._starts[shard] :][:2].tolist()
        members = dict(_members(file.read(begin, end)))
        key = _key(next(iter(members)))
        place = f"{file.path.name}/{key}"
        return Record(_fields(members, place), place, self._root or file.path.parent)


def _record_offsets(path: Path) -> IntArray:
    """[num_records + 1] int64 byte at which each record's first header begins, and the end of the last."""
    offsets: list[int] = []
    key, end = None, 0
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not _is_data(member):
                    continue
                if PurePosixPath(member.name).suffix.lower() in REFUSED:
                    raise DataError(
                        f"{path}/{member.name} is a pickled object, which could run code; remove it"
                    )
                if _key(member.name) != key:
                    key = _key(member.name)
                    offsets.append(member.offset)
                end = member.offset_data + member.size
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{path} is not a tar archive, or is compressed or cut off: {error}") from error
    # tarfile takes a header that it cannot read for the end of the archive; the true end is zeros.
    after = -(-end // BLOCK) * BLOCK
    file = OpenedFile(path)
    if after < len(file) and any(file.read(after, min(after + BLOCK, len(file)))):
        raise DataError(f"{path} is broken after byte {end}, where the next file should begin")
    return np.asarray([*offsets, end], dtype=np.int64)


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a stretch of an archive."""
    ending = bytes(-len(data) % BLOCK + 2 * BLOCK)
    with tarfile.open(fileobj=io.BytesIO(data + ending), mode="r:") as archive:
        for member in archive:
            if _is_data(member):
                yield member.name, data[member.offset_data : member.offset_data + member.size]


def _is_data(member: tarfile.TarInfo) -> bool:
    """True for an ordinary file that is not the archiver's own."""
    return member.isreg() and not PurePosixPath(member.name).name.startswith(("._", "__"))


def _key(name: str) -> str:
    """A member's name up to the first dot of its last part."""
    path = PurePosixPath(name)
    return str(path.parent / path.name.split(".", 1)[0]) if path.name else name


def _fields(members: dict[str, bytes], place: str) -> dict[str, Any]:
    """A record's columns, its media as {"bytes", "path"}."""
    fields: dict[str, Any] = {}
    media: dict[str, dict[str, Any]] = {}
    for name, data in members.items():
        column, suffix = PurePosixPath(name).name.partition(".")[2], PurePosixPath(name).suffix.lower()
        if suffix in IMAGE_SUFFIXES | VIDEO_SUFFIXES:
            media[name] = {"bytes": data, "path": name}
            continue
        try:
            value = json.loads(data) if suffix == ".json" else data
            value = data.decode("utf-8") if suffix in TEXT_SUFFIXES else value
            value = int(data) if suffix == ".cls" else value
        except ValueError as error:
            raise DataError(f"{place}.{column}: not {suffix.removeprefix('.')}: {error}") from error
        fields.update(value if column == "json" and isinstance(value, dict) else {column: value})
    by_name = {**{PurePosixPath(name).name: medium for name, medium in media.items()}, **media}
    named = {name: _with_media(value, by_name) for name, value in fields.items()}
    if named != fields:
        return named
    kinds = {name: PurePosixPath(name).suffix.lower() in VIDEO_SUFFIXES for name in media}
    images = [medium for name, medium in media.items() if not kinds[name]]
    videos = [medium for name, medium in media.items() if kinds[name]]
    return {**fields, **{kind: found for kind, found in (("images", images), ("videos", videos)) if found}}


def _with_media(value: Any, media: dict[str, dict[str, Any]]) -> Any:
    """A JSON value in which the name of a member stands for the member."""
    if isinstance(value, str):
        return media.get(value, value)
    if isinstance(value, list):
        return [_with_media(item, media) for item in value]
    if isinstance(value, dict):
        return {name: _with_media(item, media) for name, item in value.items()}
    return value
