"""One-to-one matching of written boxes with true ones, from their table of overlaps."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Pairs: TypeAlias = list[tuple[int, int]]
"""(row, column) of each pair; every row and every column at most once."""


def greedy_match(overlap: npt.NDArray[np.float64], threshold: float) -> Pairs:
    """Take the greatest overlap of all, then the greatest among what is left, down to the threshold.

    Args:
        overlap: [num_rows, num_columns], such as IoU; among equals the first row, then the first column.
        threshold: pairs below it are not a match; a pair that does not overlap at all never is.
    """
    rows, columns = np.nonzero(_allowed(overlap, threshold))
    order = np.argsort(-overlap[rows, columns], kind="stable")
    most = min(overlap.shape)
    free_rows, free_columns = [True] * overlap.shape[0], [True] * overlap.shape[1]
    pairs: Pairs = []
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if free_rows[row] and free_columns[column]:
            free_rows[row] = free_columns[column] = False
            pairs.append((row, column))
            if len(pairs) == most:
                break
    return pairs


def hungarian_match(overlap: npt.NDArray[np.float64], threshold: float) -> Pairs:
    """Match as many pairs at or above the threshold as can be had at once, with the greatest sum of those.

    Args:
        overlap: [num_rows, num_columns], such as IoU, in [0, 1].
        threshold: pairs below it are not a match; a pair that does not overlap at all never is.
    """
    from scipy.optimize import linear_sum_assignment

    allowed = _allowed(overlap, threshold)
    # One more pair outweighs whatever the others could gain.
    worth = np.where(allowed, overlap + min(overlap.shape, default=0) + 1, 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return [
        (int(row), int(column)) for row, column in zip(rows, columns, strict=True) if allowed[row, column]
    ]


def _allowed(overlap: npt.NDArray[np.float64], threshold: float) -> npt.NDArray[np.bool_]:
    allowed: npt.NDArray[np.bool_] = (overlap >= threshold) & (overlap > 0)
    return allowed
