"""Law 2: the loss mask is structure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.algorithm.mask import loss_mask
from vlrl.types import Turn


def test_the_worked_example_of_trajectory() -> None:
    turns = [Turn((0, 2), (2, 4)), Turn((4, 5), (5, 6))]
    assert loss_mask(turns, 6).tolist() == [False, False, True, True, False, True]


def test_no_turns_and_no_tokens_is_an_empty_mask() -> None:
    assert loss_mask([], 0).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6))
def test_the_mask_is_true_on_actions_and_nowhere_else(sizes: list[tuple[int, int]]) -> None:
    turns, expected, end = [], [], 0
    for context, action in sizes:
        turns.append(Turn((end, end + context), (end + context, end + context + action)))
        expected += [False] * context + [True] * action
        end += context + action
    mask = loss_mask(turns, end)
    assert mask.dtype == np.bool_
    assert mask.tolist() == expected


@pytest.mark.parametrize(
    ("turns", "num_tokens"),
    [
        ([Turn((1, 2), (2, 3))], 3),  # starts late
        ([Turn((0, 2), (3, 4))], 4),  # gap between context and action
        ([Turn((0, 2), (2, 4)), Turn((3, 5), (5, 6))], 6),  # overlap
        ([Turn((0, 2), (2, 1))], 1),  # backwards
        ([Turn((0, 2), (2, 4))], 5),  # stops early
        ([Turn((0, 2), (2, 4))], 3),  # runs over the end
    ],
)
def test_spans_that_do_not_tile_the_ledger_are_refused(turns: list[Turn], num_tokens: int) -> None:
    with pytest.raises(ValueError, match="token"):
        loss_mask(turns, num_tokens)
