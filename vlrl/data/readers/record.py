"""What a reader hands over: one record as it lies in its file, and where that is."""

from __future__ import annotations

import io
import os
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


class OpenedFile:
    """A file's bytes by position, opened on first use; pickles as its path.

    It is read and not mapped: a file that is cut off under a map ends the process by SIGBUS.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: io.FileIO | None = None

    def __len__(self) -> int:
        """Bytes of the file, now."""
        return os.fstat(self._opened().fileno()).st_size

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from begin up to end; safe in threads.

        Raises:
            DataError: if the file cannot be read, or has no such bytes any more.
        """
        try:
            pieces, position = [], begin
            while position < end and (piece := os.pread(self._opened().fileno(), end - position, position)):
                pieces.append(piece)
                position += len(piece)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error}") from error
        if position < end:
            raise DataError(
                f"{self.path} has become shorter than it was when it was opened; write changed data to "
                "another file, or rename it to this one, and start again"
            )
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _opened(self) -> io.FileIO:
        if self._file is None:
            try:
                self._file = self.path.open("rb", buffering=0)
            except OSError as error:
                raise DataError(f"{self.path} cannot be read: {error}") from error
        return self._file

    def __getstate__(self) -> Path:
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.path, self._file = path, None


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
