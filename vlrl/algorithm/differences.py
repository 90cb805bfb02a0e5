"""How far trainer and sampler are apart on the tokens they both computed: a mergeable histogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from vlrl.types import FloatArray, IntArray

BINS_PER_OCTAVE = 8
"""A quantile read from the histogram is at most 2^(1/8) - 1 = 9 % too large."""
SMALLEST, LARGEST = -40, 8
"""Powers of two: differences below the first count as equal to it, those above the second as infinite."""
EDGES = 2.0 ** (np.arange((LARGEST - SMALLEST) * BINS_PER_OCTAVE + 1) / BINS_PER_OCTAVE + SMALLEST)


def no_counts() -> npt.NDArray[np.int64]:
    """The histogram of no tokens: a bin up to each edge, and one beyond the last."""
    return np.zeros(len(EDGES) + 1, np.int64)


@dataclass(frozen=True, slots=True)
class LogprobDifferences:
    """The distribution of |trainer - sampler| logprobs, in nats; add those of ranks and micro-batches.

    Attributes:
        counts: tokens by bin of EDGES.
        total: sum of the differences.
        largest: the largest one; infinite where a logprob is not a number.
        sample_id: the sample it is in; "" if there are no tokens.
    """

    counts: npt.NDArray[np.int64] = field(default_factory=no_counts)
    total: float = 0.0
    largest: float = 0.0
    sample_id: str = ""

    @classmethod
    def of(
        cls,
        trainer_logprobs: FloatArray,
        sampler_logprobs: FloatArray,
        sample_ids: Sequence[str],
        sequence_ids: IntArray,
    ) -> LogprobDifferences:
        """Measure tokens.

        Args:
            trainer_logprobs: [M] nats.
            sampler_logprobs: [M] nats.
            sample_ids: of the sequences.
            sequence_ids: [M] index into sample_ids.
        """
        if not len(trainer_logprobs):
            return cls()
        difference = np.abs(np.asarray(trainer_logprobs, np.float64) - sampler_logprobs)
        difference = np.nan_to_num(difference, nan=np.inf, posinf=np.inf)  # nan would pass every comparison
        counts = np.bincount(np.searchsorted(EDGES, difference), minlength=len(EDGES) + 1)
        worst = int(difference.argmax())
        return cls(
            counts, float(difference.sum()), float(difference[worst]), sample_ids[int(sequence_ids[worst])]
        )

    def __add__(self, other: LogprobDifferences) -> LogprobDifferences:
        """Both together."""
        worse = other if other.largest > self.largest or not self.num_tokens else self
        return LogprobDifferences(
            self.counts + other.counts, self.total + other.total, worse.largest, worse.sample_id
        )

    @property
    def num_tokens(self) -> int:
        """Tokens measured."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean difference, in nats; 0 without tokens."""
        return self.total / max(1, self.num_tokens)

    def quantile(self, share: float) -> float:
        """The difference that a share of the tokens does not exceed, in nats; 0 without tokens.

        The rank is rounded down, so that of two tokens and more the largest alone never decides, however few
        there are.
        """
        if not self.num_tokens:
            return 0.0
        rank = int(share * (self.num_tokens - 1))
        index = int(np.searchsorted(self.counts.cumsum(), rank, side="right"))
        return float("inf") if index == len(EDGES) else min(float(EDGES[index]), self.largest)
