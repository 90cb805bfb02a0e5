"""The row of a position of one source, whether its rows have numbers or only come one after the other."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Protocol, TypeAlias

import numpy as np

from vlrl.data.order import FullOrder, Order, WindowOrder
from vlrl.data.rows import StreamedRows
from vlrl.errors import DataError
from vlrl.protocols import Dataset
from vlrl.seeds import derive_seed
from vlrl.types import Row

BLOCKS_HELD = 3
"""Blocks of a streamed source in memory: a step and those prepared ahead may touch neighbours."""


Block: TypeAlias = list[Row | DataError]
"""Rows that follow one another, with the error in the place of one that is refused."""


class RowSampler(Protocol):
    """Rows by position in an endless sequence of shuffled epochs; a pure function, callable from threads."""

    def number(self, position: int, attempt: int = 0) -> int | None:
        """Number of the row at a position, None if rows have none; attempts above 0 are replacements.

        What it replaces is a row that cannot be used.
        """
        ...

    def row(self, position: int, attempt: int = 0, number: int | None = None) -> Row:
        """The row at a position, whose number is known if it has one.

        Raises:
            DataError: for a row that cannot be read.
        """
        ...


class IndexedSampler:
    """Samples rows that have numbers; those read in chunks are shuffled within windows of chunks."""

    def __init__(self, dataset: Dataset, seed: int, order: Order | None = None) -> None:
        """Take rows of a dataset in an order; None is shuffled epochs."""
        self._dataset = dataset
        chunk_sizes = getattr(dataset, "chunk_sizes", ())
        if order is None and chunk_sizes:
            order = WindowOrder(chunk_sizes, dataset.window_chunks, seed)  # type: ignore[attr-defined]
        self._order = order or FullOrder(len(dataset), seed)

    def number(self, position: int, attempt: int = 0) -> int:
        """Number of the row at a position."""
        return self._order.replacement(position, attempt) if attempt else self._order.index(position)

    def row(self, position: int, attempt: int = 0, number: int | None = None) -> Row:
        """The row of that number."""
        return self._dataset[self.number(position, attempt) if number is None else number]


class StreamedSampler:
    """Samples rows that only come one after the other: shards and, within blocks, rows are shuffled.

    All state is the position: a resumed run skips the rows before its block. Where the number of rows is not
    known, it is learned by reading the first epoch to its end.
    """

    def __init__(self, rows: StreamedRows, seed: int) -> None:
        self._rows, self._seed = rows, seed
        self._num_rows, self._num_seen = rows.num_rows, 0
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[int, int], Block] = OrderedDict()
        # (epoch, next block, its rows)
        self._reading: tuple[int, int, Iterator[Row | DataError]] | None = None

    def number(self, position: int, attempt: int = 0) -> None:
        """Rows that come one after the other have no numbers."""

    def row(self, position: int, attempt: int = 0, number: int | None = None) -> Row:
        """The row at a position."""
        with self._lock:
            epoch, place = self._locate(position)
            number, place = divmod(place, self._rows.buffer_size)
            block = self._block(epoch, number)
        if attempt:
            index = derive_seed(self._seed, "replacement", position, attempt) % len(block)
        else:
            rng = np.random.default_rng(derive_seed(self._seed, "block", epoch, number))
            index = int(rng.permutation(len(block))[place])
        found = block[index]
        if isinstance(found, DataError):
            raise found
        return found

    def _locate(self, position: int) -> tuple[int, int]:
        """(epoch, place in it); reads on until the position is reached or the number of rows is known."""
        while self._num_rows is None and self._num_seen <= position:
            block = self._block(0, self._num_seen // self._rows.buffer_size)
            self._num_seen += len(block)
            if len(block) < self._rows.buffer_size:
                self._num_rows = self._num_seen
        if self._num_rows is None:
            return 0, position
        if self._num_rows == 0:
            raise DataError("a streamed dataset is empty; training needs at least one row")
        return divmod(position, self._num_rows)

    def _block(self, epoch: int, number: int) -> Block:
        """Rows number · buffer_size and on; fewer at the end."""
        if (epoch, number) in self._held:
            return self._held[epoch, number]
        begin = number * self._rows.buffer_size
        if self._reading is None or self._reading[:2] != (epoch, number):
            rows = self._rows.outcomes(derive_seed(self._seed, "shards", epoch), begin)
        else:
            rows = self._reading[2]
        self._reading = None  # an iterator that raises is at its end; whoever asks again needs another one
        block = list(islice(rows, self._rows.buffer_size))
        if self._num_rows is not None and len(block) < min(self._rows.buffer_size, self._num_rows - begin):
            raise DataError(
                f"a streamed dataset that declares {self._num_rows} rows ended after {begin + len(block)}; "
                f"give it a limit of {begin + len(block)}"
            )
        self._reading = (epoch, number + 1, rows)
        self._held[epoch, number] = block
        while len(self._held) > BLOCKS_HELD:
            self._held.popitem(last=False)
        return block
