"""Rows in proportion to weights, evenly: with equal weights every row comes exactly once an epoch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from vlrl.config.data import SamplerConfig, bound_weights
from vlrl.data.curriculum.evidence import RateArray
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed
from vlrl.types import IntArray


class Weighted:
    """Systematic sampling: an epoch's N positions have one of N equal strata of the weights each.

    A position's point is (stratum + u) / N of the sum of weights: strata are shuffled by epoch, u in [0, 1)
    is the epoch's. So while the weights stay the same, a row of the probability P comes ⌊N P⌋ or ⌈N P⌉ times
    an epoch and N P times in the mean; independent choices would miss a third of equally likely rows.
    """

    def __init__(self, num_rows: int, seed: int) -> None:
        self._num_rows, self._seed = num_rows, seed
        self._epoch = lru_cache(maxsize=2)(self._strata)

    def row(self, position: int, ends: RateArray) -> int:
        """The row at a position; [N] sums of the weights up to each row."""
        epoch, place = divmod(position, self._num_rows)
        strata, shift = self._epoch(epoch)
        return _row_at((int(strata[place]) + shift) / self._num_rows, ends)

    def replacement(self, position: int, attempt: int, ends: RateArray) -> int:
        """Another row in proportion to its weight, chosen by the position and the attempt."""
        seed = derive_seed(self._seed, "replacement", position, attempt)
        return _row_at(np.random.default_rng(seed).random(), ends)

    def _strata(self, epoch: int) -> tuple[IntArray, float]:
        rng = np.random.default_rng(derive_seed(self._seed, "strata", epoch))
        return rng.permutation(self._num_rows).astype(np.int64), float(rng.random())


def _row_at(share: float, ends: RateArray) -> int:
    """The row whose part of the sum a share of it falls into; never one without weight."""
    last = int(np.searchsorted(ends, ends[-1]))  # of those with weight: rounding may lead behind it
    return min(int(np.searchsorted(ends, share * ends[-1], side="right")), last)


class RowWeights:
    """A config's function of rates, checked at every call: a stranger may have written it."""

    def __init__(self, config: SamplerConfig, section: str) -> None:
        """Find the function.

        Args:
            config: of the sampler.
            section: dotted key of its source, for errors.
        """
        self._bound, self._name, self._section = bound_weights(config), config.name, section

    @property
    def changes_with_time(self) -> bool:
        """Whether equal rates have other weights at another position."""
        return bool(self._bound.wanted)

    def of(self, rates: RateArray, epochs: float, excluded: IntArray | None = None) -> RateArray:
        """[N] weights.

        Args:
            rates: [N].
            epochs: positions of the source so far, divided by N.
            excluded: rows that cannot be used.

        Raises:
            ConfigError: for weights that are not N finite numbers of at least 0, of which one is above.
        """
        weights = np.array(self._bound(rates, epochs=epochs), dtype=np.float64)
        what = f"{self._section}.sampler.name={self._name}"
        if weights.shape != rates.shape or not np.isfinite(weights).all() or (weights < 0).any():
            raise ConfigError(
                f"{what} must return {rates.size} finite weights of at least 0, one for each row, not an "
                f"array of shape {weights.shape} with {np.count_nonzero(~(weights >= 0))} that are none"
            )
        if excluded is not None:
            weights[excluded] = 0.0
        if not weights.any():
            raise ConfigError(
                f"{what} gives every row the weight 0 at pass rates from {rates.min():.3g} to "
                f"{rates.max():.3g}; widen {self._section}.sampler.options"
            )
        return weights


class StaticOrder:
    """The order of a source whose rates stay those of the start model; see `vlrl.data.order.Order`."""

    def __init__(self, rates: RateArray, unusable: IntArray, weights: RowWeights, seed: int) -> None:
        """Compute the weights once, if they do not change.

        Args:
            rates: [N].
            unusable: rows that had no prompt that fits.
            weights: of rates.
            seed: of the source.
        """
        self._rates, self._unusable, self._weights = rates, unusable, weights
        self._weighted = Weighted(rates.size, seed)
        self._fixed: RateArray | None = None
        if not weights.changes_with_time:
            self._fixed = self._ends(0)

    def index(self, position: int) -> int:
        """The row at a position."""
        return self._weighted.row(position, self._ends(position))

    def replacement(self, position: int, attempt: int) -> int:
        """Another row, with the same weights."""
        return self._weighted.replacement(position, attempt, self._ends(position))

    def _ends(self, position: int) -> RateArray:
        if self._fixed is not None:
            return self._fixed
        return np.cumsum(self._weights.of(self._rates, position / self._rates.size, self._unusable))
