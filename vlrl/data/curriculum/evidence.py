"""How often each row's completions pass, as far as it is known: counts that age as the policy moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.errors import ConfigError
from vlrl.types import IntArray

RateArray: TypeAlias = npt.NDArray[np.float64]

NEUTRAL = 0.5
"""Pass rate of a row of which nothing is known."""


class Evidence:
    """Completions of each row that passed, and that were scored; those of h positions ago count half.

        n_i(t) = Σ_j n_ij 2^(-(t - t_ij) / h)         k_i(t) likewise of those that passed
        rate_i = (k_i + s q_i) / (n_i + s)

    with the prior's strength s and its rate q: 1/2, or the rate of all rows of the same pool,
    (Σ k + s/2) / (Σ n + s). So the rate of a row that has not come for long goes back to the prior, and it
    comes again. Positions t are the source's own.
    """

    def __init__(
        self,
        num_rows: int,
        *,
        half_life: float,
        prior_strength: float,
        pools: IntArray | None = None,
        start: tuple[RateArray, RateArray] | None = None,
    ) -> None:
        """Begin with what is known at position 0.

        Args:
            num_rows: N.
            half_life: h, in positions; may be infinite.
            prior_strength: s, in completions.
            pools: [N] number of each row's pool; None is the prior 1/2 for all.
            start: [N] completions that passed and [N] that were scored, by the start model.
        """
        passed, scored = start or (np.zeros(num_rows), np.zeros(num_rows))
        self._passed, self._scored = passed.astype(np.float64), scored.astype(np.float64)
        self._counted_at = np.zeros(num_rows, np.int64)  # position of which a row's counts are
        self._half_life, self._strength, self._pools = half_life, prior_strength, pools
        self.num_seen = np.zeros(num_rows, np.int64)

    def observe(self, row: int, position: int, num_passed: int, num_scored: int) -> None:
        """Count a group of a row, which was at a position."""
        fresh = float(self._fresh(position, row))
        self._passed[row] = self._passed[row] * fresh + num_passed
        self._scored[row] = self._scored[row] * fresh + num_scored
        self._counted_at[row] = position
        self.num_seen[row] += 1

    def rates(self, position: int) -> RateArray:
        """[N] estimated pass rate of each row at a position."""
        fresh = self._fresh(position)
        passed, scored = self._passed * fresh, self._scored * fresh
        prior: RateArray | float = NEUTRAL
        if self._pools is not None:
            of_pool = np.bincount(self._pools, passed) + self._strength * NEUTRAL
            prior = (of_pool / (np.bincount(self._pools, scored) + self._strength))[self._pools]
        rates: RateArray = (passed + self._strength * prior) / (scored + self._strength)
        return rates

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """What `restore` takes."""
        return {
            "passed": self._passed,
            "scored": self._scored,
            "counted_at": self._counted_at,
            "num_seen": self.num_seen,
        }

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Take what was known when a checkpoint was written.

        Raises:
            ConfigError: if it is of another number of rows.
        """
        if state["passed"].shape != self._passed.shape:
            raise ConfigError(
                f"--resume: the checkpoint has pass rates of {state['passed'].size} rows and data.train has "
                f"{self._passed.size}; give the data that it was written with, or another run.name and no "
                "--resume"
            )
        self._passed, self._scored = state["passed"].astype(np.float64), state["scored"].astype(np.float64)
        self._counted_at = state["counted_at"].astype(np.int64)
        self.num_seen = state["num_seen"].astype(np.int64)

    def _fresh(self, position: int, row: int | slice = slice(None)) -> RateArray:
        """Factor by which counts have lost weight by a position."""
        fresh: RateArray = np.exp2((self._counted_at[row] - position) / self._half_life)
        return fresh
