"""Demonstrations that lie in shards of TFRecord files, which can only be read from their beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from vlrl.config.options import RewardConfig
from vlrl.data.readers.record import Record
from vlrl.envs.gui.datasets.steps import Demonstration, Told


class DemonstrationStream:
    """Rows of the demonstrations of some files, one file after the other.

    Attributes:
        num_records: not known before all files have been read.
        buffer_size: rows that are shuffled among themselves.
        rewards: of the set.
    """

    num_records: int | None = None

    def __init__(
        self,
        files: Sequence[Path],
        read: Callable[[Path], Iterator[Demonstration]],
        told: Told,
        rewards: Sequence[RewardConfig],
        shuffle_buffer: int,
    ) -> None:
        self._files, self._read, self._told = list(files), read, told
        self.rewards, self.buffer_size = tuple(rewards), shuffle_buffer

    def records(self, shuffle_seed: int | None, skip: int) -> Iterator[Record]:
        """The rows from number `skip` on; a seed puts the files in another order.

        Raises:
            DataError: naming the file that cannot be read.
        """
        order = np.arange(len(self._files))
        if shuffle_seed is not None:
            order = np.random.default_rng(shuffle_seed).permutation(len(self._files))
        rows = (
            row
            for n in order.tolist()
            for shown in self._read(self._files[n])
            for row in self._told.rows(shown)
        )
        return islice(rows, skip, None)
