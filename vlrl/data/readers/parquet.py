"""Parquet files, read a row group at a time; a few groups stay in memory."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlrl.data.readers.files import expand
from vlrl.data.readers.record import Record
from vlrl.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

MIB = 1 << 20
SPLIT = re.compile(r"(?:^|[/_.-])(train|test|validation|valid|val|dev)(?=[/_.-])")
"""Where a file's name says which split it belongs to."""


class ParquetReader:
    """Rows of one file, of a pattern's files, or of all files in a folder, in the order of their names.

    Images may be columns of bytes or Hugging Face's {bytes, path}. Rows are shuffled within windows of
    row groups that together fill half of the cache, so that each group is read about once an epoch.
    """

    def __init__(
        self,
        path: str,
        image_root: str | None = None,
        split: str | None = None,
        cache_mib: float = 512.0,
    ) -> None:
        """Read the files' indexes.

        Args:
            path: file, folder or pattern.
            image_root: folder of media that rows name by path; each file's own folder if not given.
            split: only files whose name says so (train-00000.parquet); needed if there are several.
            cache_mib: memory for row groups, in MiB.

        Raises:
            DataError: for a missing or broken file.
            ConfigError: if the files belong to several splits and none is chosen.
        """
        files = sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else expand(path)
        self._files = _of_split(files, Path(path), split)
        self._root = Path(image_root) if image_root else None
        with ThreadPoolExecutor(8) as executor:
            indexes = list(executor.map(_row_groups, self._files))
        groups = [(file, number, *g) for file, index in enumerate(indexes) for number, g in enumerate(index)]
        self._groups = [(file, number) for file, number, _, _ in groups]
        self.chunk_sizes = [num_rows for _, _, num_rows, _ in groups]
        self._starts = [0, *accumulate(self.chunk_sizes)]
        self._cache_bytes = int(cache_mib * MIB)
        largest = max((num_bytes for *_, num_bytes in groups), default=1)
        self.window_chunks = max(1, self._cache_bytes // 2 // max(1, largest))
        self._open_cache()

    def __len__(self) -> int:
        """Number of rows."""
        return self._starts[-1]

    def __getitem__(self, index: int) -> Record:
        """Row `index`.

        Raises:
            DataError: naming the file, if it cannot be read.
        """
        chunk = bisect_right(self._starts, index) - 1
        file, number = self._groups[chunk]
        path = self._files[file]
        fields = self._group(chunk).slice(index - self._starts[chunk], 1).to_pylist()[0]
        in_file = index - self._starts[chunk - number]
        return Record(fields, f"{path.name}:{in_file + 1}", self._root or path.parent)

    def _group(self, chunk: int) -> pa.Table:
        """A row group; one thread decodes at a time, and pyarrow uses its own threads for that."""
        with self._lock:
            if chunk in self._cache:
                self._cache.move_to_end(chunk)
                return self._cache[chunk]
            file, number = self._groups[chunk]
            table = _read(self._files[file], number)
            self._cache[chunk] = table
            while len(self._cache) > 1 and sum(t.nbytes for t in self._cache.values()) > self._cache_bytes:
                self._cache.popitem(last=False)
            return table

    def _open_cache(self) -> None:
        self._cache: OrderedDict[int, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in ("_cache", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open_cache()


def _of_split(files: list[Path], whole: Path, split: str | None) -> list[Path]:
    """The files of one split; all of them if their names speak of no more than one."""
    splits: dict[Path, str] = {}
    for file in files:
        inside = str(file.relative_to(whole)) if file.is_relative_to(whole) and file != whole else file.name
        if match := SPLIT.search(inside):
            splits[file] = match[1]
    named = sorted(set(splits.values()))
    if split is None and len(named) > 1:
        raise ConfigError(f"{whole} holds several splits ({', '.join(named)}); choose one with options.split")
    chosen = files if split is None else [file for file in files if splits.get(file) == split]
    if not chosen:
        raise ConfigError(f"{whole} holds no split {split!r}; there are: {', '.join(named) or 'none'}")
    return chosen


def _row_groups(path: Path) -> list[tuple[int, int]]:
    """(rows, bytes before compression) of each row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            return [(group.num_rows, group.total_byte_size) for group in groups]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a parquet file that can be read: {error}") from error


def _read(path: Path, number: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            return file.read_row_group(number)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: row group {number} cannot be read: {error}") from error
