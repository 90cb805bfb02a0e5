"""Equal rewards are equal whatever the order and the roundings of their sums."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vlrl.rounding import all_equal, summed

REWARDS = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30)


@given(REWARDS.flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_a_sum_has_the_same_bits_in_every_order(orders: tuple[list[float], list[float]]) -> None:
    values, permuted = orders
    assert summed(values) == summed(permuted)
    assert math.isclose(summed(values), math.fsum(values), abs_tol=1e-12 * max(map(abs, values)))


def test_what_cancellation_leaves_is_nothing() -> None:
    assert 0.1 + 0.2 - 0.3 != 0
    assert summed([0.1, 0.2, -0.3]) == summed([0.3, -0.3]) == summed([]) == 0.0
    assert summed([1e-9, -1e-10]) > 0  # small summands are not a residue
    assert summed(np.asarray([1.0, -0.5], np.float32)) == 0.5


def test_a_sum_beyond_float64_is_infinite_and_no_number_stays_none() -> None:
    assert summed([1e308, 1e308]) == summed([1.0, math.inf]) == math.inf
    assert math.isnan(summed([math.inf, -math.inf]))
    assert math.isnan(summed([1.0, math.nan]))
    assert not all_equal([1e308, -1e308])


@given(st.floats(-1e6, 1e6), st.integers(1, 16), st.floats(-0.4e-6, 0.4e-6))
def test_values_within_a_millionth_are_equal(value: float, n: int, share: float) -> None:
    assert all_equal([value] * n + [value * (1 + share)])


@given(st.floats(1e-3, 1e6), st.floats(2e-6, 1.0), st.sampled_from([-1, 1]))
def test_values_further_apart_are_not(value: float, share: float, sign: int) -> None:
    assert not all_equal([sign * value, sign * value * (1 + share)])


def test_nothing_and_one_value_are_equal_and_zero_is_not_something() -> None:
    assert all_equal([])
    assert all_equal([0.0, -0.0])
    assert not all_equal([0.0, 1e-300])
