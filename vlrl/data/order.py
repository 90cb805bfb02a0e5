"""Which row comes at which position: pure functions of the seed, so that runs can resume."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vlrl.seeds import derive_seed

Permutation = npt.NDArray[np.int32]


class Order(Protocol):
    """An endless sequence of epochs, each a shuffle of all rows."""

    def index(self, position: int) -> int:
        """The row at a position."""
        ...

    def replacement(self, position: int, attempt: int) -> int:
        """The row that takes a position's place if its own and attempt - 1 others cannot be used."""
        ...


class FullOrder:
    """Epochs shuffled as a whole. Memory: 4 bytes a row, for the two epochs last asked for."""

    def __init__(self, num_rows: int, seed: int) -> None:
        self._num_rows, self._seed = num_rows, seed
        self._epoch = lru_cache(maxsize=2)(lambda epoch: _shuffled(num_rows, seed, "epoch", epoch))

    def index(self, position: int) -> int:
        """The row at a position."""
        epoch, place = divmod(position, self._num_rows)
        return int(self._epoch(epoch)[place])

    def replacement(self, position: int, attempt: int) -> int:
        """Any row, chosen by the position and the attempt."""
        return derive_seed(self._seed, "replacement", position, attempt) % self._num_rows


class WindowOrder:
    """Epochs for readers that read a chunk at a time: chunks are shuffled, then rows within a few chunks.

    A window is `window_chunks` neighbours in the shuffled order of chunks, and its rows come in a shuffled
    order before the next window's, so that no more chunks than that need be held.
    """

    def __init__(self, chunk_sizes: Sequence[int], window_chunks: int, seed: int) -> None:
        self._sizes, self._window_chunks, self._seed = chunk_sizes, window_chunks, seed
        self._starts = [0, *accumulate(chunk_sizes)]
        self._epoch = lru_cache(maxsize=2)(self._windows)
        self._rows = lru_cache(maxsize=4)(self._window)

    def index(self, position: int) -> int:
        """The row at a position."""
        epoch, window, place = self._locate(position)
        return int(self._rows(epoch, window)[place])

    def replacement(self, position: int, attempt: int) -> int:
        """A row of the same window, chosen by the position and the attempt."""
        epoch, window, _ = self._locate(position)
        rows = self._rows(epoch, window)
        return int(rows[derive_seed(self._seed, "replacement", position, attempt) % len(rows)])

    def _locate(self, position: int) -> tuple[int, int, int]:
        """(epoch, window, place in the window) of a position."""
        epoch, place = divmod(position, self._starts[-1])
        _, ends = self._epoch(epoch)
        window = bisect_right(ends, place)
        return epoch, window, place - (ends[window - 1] if window else 0)

    def _windows(self, epoch: int) -> tuple[list[list[int]], list[int]]:
        """The chunks of each window of an epoch, and the position at which each window ends."""
        chunks = _shuffled(len(self._sizes), self._seed, "chunks", epoch).tolist()
        windows = [chunks[i : i + self._window_chunks] for i in range(0, len(chunks), self._window_chunks)]
        return windows, list(accumulate(sum(self._sizes[c] for c in window) for window in windows))

    def _window(self, epoch: int, window: int) -> Permutation:
        """The rows of a window, shuffled."""
        chunks = self._epoch(epoch)[0][window]
        rows = np.concatenate(
            [np.arange(self._starts[c], self._starts[c + 1], dtype=np.int32) for c in chunks]
        )
        return rows[_shuffled(len(rows), self._seed, "window", epoch, window)]


def _shuffled(size: int, *seed_path: int | str) -> Permutation:
    return np.random.default_rng(derive_seed(*seed_path)).permutation(size).astype(np.int32)
