"""The histogram of logprob differences against the numbers themselves, however they are put together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.algorithm.differences import BINS_PER_OCTAVE, LogprobDifferences

VALUES = st.lists(st.floats(1e-9, 100.0), min_size=1, max_size=60)


def of(values: list[float], first: int = 0) -> LogprobDifferences:
    ids = [f"s{first + i}" for i in range(len(values))]
    return LogprobDifferences.of(-np.asarray(values), np.zeros(len(values)), ids, np.arange(len(values)))


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from([0.5, 0.9, 0.999]))
def test_a_quantile_is_numpy_s_to_a_tenth_and_never_less(values: list[float], share: float) -> None:
    exact = float(np.quantile(values, share, method="lower"))
    found = of(values).quantile(share)
    assert exact * (1 - 1e-9) <= found <= exact * 2 ** (1 / BINS_PER_OCTAVE) * (1 + 1e-9)


@settings(max_examples=50, deadline=None)
@given(VALUES, VALUES)
def test_parts_add_up_to_the_whole(left: list[float], right: list[float]) -> None:
    together, whole = of(left) + of(right, len(left)), of([*left, *right])
    assert (together.counts == whole.counts).all()
    assert np.isclose(together.mean, np.mean([*left, *right]))
    assert together.largest == whole.largest == max(*left, *right)
    assert together.sample_id == whole.sample_id
    assert (LogprobDifferences() + together).sample_id == (together + LogprobDifferences()).sample_id


def test_of_no_tokens_everything_is_zero() -> None:
    empty = LogprobDifferences() + LogprobDifferences()
    assert (empty.num_tokens, empty.mean, empty.largest, empty.quantile(0.999)) == (0, 0.0, 0.0, 0.0)


def test_what_is_no_number_is_infinite() -> None:
    differences = LogprobDifferences.of(np.array([np.nan, 0.5]), np.zeros(2), ["a", "b"], np.arange(2))
    assert (differences.largest, differences.sample_id, differences.mean) == (np.inf, "a", np.inf)
    assert differences.quantile(1.0) == np.inf
