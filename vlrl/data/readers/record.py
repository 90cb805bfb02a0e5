"""What a reader hands over: one record as it lies in its file, and where that is."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from vlrl.errors import DataError


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a source, not yet a row.

    Attributes:
        fields: column → value; the holder's own copy.
        place: file and line, or shard and key: unique in the source, for people.
        root: folder that media paths are relative to and must stay under; None if paths are not looked at.
    """

    fields: dict[str, Any]
    place: str
    root: Path | None


class Reader(Protocol):
    """Records by index. A `vlrl.protocols.Dataset` is one too: its rows are records without a place.

    A reader for which neighbours are cheaper than strangers also has `chunk_sizes` (rows of each chunk, in
    order) and `window_chunks` (how many chunks it can hold): its rows are then shuffled within windows.
    """

    def __len__(self) -> int:
        """Number of records."""
        ...

    def __getitem__(self, index: int) -> Record:
        """The record at `index`, 0 ≤ index < len(self).

        Raises:
            DataError: naming the file and the place in it.
        """
        ...


class MappedFile:
    """A file's bytes by position, mapped into memory on first use; pickles as its path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data: mmap.mmap | bytes | None = None

    @property
    def data(self) -> mmap.mmap | bytes:
        """All bytes; nothing is read until sliced."""
        if self._data is None:
            try:
                with self.path.open("rb") as file:
                    # An empty file cannot be mapped.
                    empty = self.path.stat().st_size == 0
                    self._data = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except OSError as error:
                raise DataError(f"{self.path} cannot be read: {error}") from error
        return self._data

    def __getstate__(self) -> Path:
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.path, self._data = path, None


class Concatenation:
    """Several readers one after the other."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        self._starts = [0, *accumulate(len(reader) for reader in readers)]

    def __len__(self) -> int:
        """Number of records."""
        return self._starts[-1]

    def __getitem__(self, index: int) -> Record:
        """The record at `index`."""
        which = bisect_right(self._starts, index) - 1
        return self._readers[which][index - self._starts[which]]


class StreamReader(Protocol):
    """Records that can only be had one after the other.

    Attributes:
        num_records: how many there are; None if that is not known.
        buffer_size: rows that are shuffled among themselves.
    """

    num_records: int | None
    buffer_size: int

    def records(self, shuffle_seed: int | None, skip: int) -> Iterator[Record]:
        """The records from number `skip` on; a seed puts whole shards in another order."""
        ...
