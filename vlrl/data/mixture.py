"""Several sources in one stream: the source of a position is a pure function of the seed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from vlrl.seeds import derive_seed
from vlrl.types import IntArray

BLOCK = 1 << 14
"""Positions whose sources are chosen at once."""


class Mixture:
    """Sources chosen in proportion to their weights; each goes through its own epochs.

    `locate(p)` gives the source of position p and how many earlier positions fell to it: its own position.
    """

    def __init__(self, weights: Sequence[float], seed: int) -> None:
        self._bounds = np.cumsum(weights)[:-1] / sum(weights)
        self._num_sources, self._seed = len(weights), seed
        self._before: list[IntArray] = [np.zeros(len(weights), np.int64)]  # counts before each block
        self._block = lru_cache(maxsize=4)(self._sources)

    def locate(self, position: int) -> tuple[int, int]:
        """(source, position in that source)."""
        if self._num_sources == 1:
            return 0, position
        block, place = divmod(position, BLOCK)
        while len(self._before) <= block:
            last = len(self._before) - 1
            counts = np.bincount(self._sources(last), minlength=self._num_sources)
            self._before.append(self._before[last] + counts)
        sources = self._block(block)
        source = int(sources[place])
        return source, int(self._before[block][source] + (sources[:place] == source).sum())

    def _sources(self, block: int) -> IntArray:
        """[BLOCK] int64 source of each position of a block."""
        uniforms = np.random.default_rng(derive_seed(self._seed, "mixture", block)).random(BLOCK)
        return np.searchsorted(self._bounds, uniforms, side="right").astype(np.int64)
