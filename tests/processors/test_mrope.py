"""Rotary positions of prompts with media, against a definition written out token by token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.processors.prompts.mrope import mrope_positions, text_positions

SIDES = st.integers(1, 5)
PIECES = st.lists(
    st.tuples(st.integers(1, 4), st.tuples(SIDES, SIDES, SIDES), st.sampled_from([0.27, 1.0, 2.5])),
    max_size=4,
)


@given(PIECES, st.integers(0, 3), st.integers(0, 100))
def test_every_token_stands_where_the_definition_puts_it(
    pieces: list[tuple[int, tuple[int, int, int], float]], num_last: int, start: int
) -> None:
    is_pad: list[bool] = []
    expected: list[tuple[int, int, int]] = []
    here = start
    for num_text, (time, height, width), step in pieces:
        for _ in range(num_text):
            is_pad.append(False)
            expected.append((here, here, here))
            here += 1
        cells = [(t, h, w) for t in range(time) for h in range(height) for w in range(width)]
        is_pad += [True] * len(cells)
        placed = [(here + int(t * step), here + h, here + w) for t, h, w in cells]
        expected += placed
        here = max(max(p) for p in placed) + 1
    for _ in range(num_last):
        is_pad.append(False)
        expected.append((here, here, here))
        here += 1
    grids, steps = [grid for _, grid, _ in pieces], [step for _, _, step in pieces]
    positions, following = mrope_positions(np.array(is_pad, dtype=bool), grids, steps, start)
    assert positions.T.tolist() == [list(p) for p in expected]
    assert following == here


def test_pads_that_are_not_the_grids_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        mrope_positions(np.array([False, True, True, False]), [(1, 1, 3)], [1.0], 0)


def test_text_advances_all_rows_alike() -> None:
    assert text_positions(3, 5).tolist() == [[5, 6, 7]] * 3
