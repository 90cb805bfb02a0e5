"""Which differences between rewards are rounding alone: one rule for sums, and one for groups.

Decimal rewards such as -0.01 have no exact binary form, so episodes that were paid the same differ in the
last bits of their returns. Divided by the deviation of the group, such a difference is an advantage of full
size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

SPREAD = 1e-6
"""Values whose range is at most this share of the largest are equal: float32 resolves 1.2e-7, and
a float64 sum of a thousand rewards is exact to 1e-13."""
RESIDUE = 2.0**-40
"""A sum that is at most this share of its largest summand is what cancellation left, and is 0."""


def all_equal(values: npt.ArrayLike) -> bool:
    """Whether values differ by rounding alone: max - min ≤ 1e-6 · max|value|; true of none and of one."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        return True
    lowest, highest = float(array.min()), float(array.max())
    return highest - lowest <= SPREAD * max(abs(lowest), abs(highest))


def summed(values: Iterable[Any]) -> float:
    """The sum of numbers, the same to the last bit in whatever order they come.

    It is the exact sum, rounded once (`math.fsum`). What is left of summands that cancel is 0: 0.1 + 0.2
    - 0.3 is, so that it equals 0.3 - 0.3. Where there is no finite sum, it is infinite or nan.
    """
    numbers = [float(value) for value in values]
    try:
        total = math.fsum(numbers)
    except (OverflowError, ValueError):  # beyond float64; infinities of both signs
        return sum(numbers)
    return 0.0 if abs(total) < RESIDUE * max(map(abs, numbers), default=0.0) else total
