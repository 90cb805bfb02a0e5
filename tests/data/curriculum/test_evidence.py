"""Pass rates of rows: the closed form, ageing, pools, what a checkpoint keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vlrl.data.curriculum.evidence import Evidence
from vlrl.errors import ConfigError


def test_nothing_known_is_one_half_and_counts_are_added_to_the_prior() -> None:
    evidence = Evidence(3, half_life=math.inf, prior_strength=1.0)
    assert evidence.rates(0).tolist() == [0.5] * 3
    evidence.observe(1, 4, num_passed=8, num_scored=8)
    evidence.observe(2, 5, num_passed=2, num_scored=8)
    evidence.observe(2, 6, num_passed=4, num_scored=8)
    assert np.allclose(evidence.rates(100), [0.5, 8.5 / 9, 6.5 / 17])
    assert evidence.num_seen.tolist() == [0, 1, 2]


def test_counts_lose_half_their_weight_in_a_half_life() -> None:
    evidence = Evidence(1, half_life=10.0, prior_strength=1.0)
    evidence.observe(0, 0, num_passed=8, num_scored=8)
    assert evidence.rates(10)[0] == pytest.approx((4 + 0.5) / (4 + 1))
    evidence.observe(0, 10, num_passed=0, num_scored=8)
    assert evidence.rates(10)[0] == pytest.approx((4 + 0.5) / (12 + 1))
    assert evidence.rates(30)[0] == pytest.approx((1 + 0.5) / (3 + 1))
    assert evidence.rates(10_000)[0] == pytest.approx(0.5)


def test_rows_of_a_pool_share_their_prior() -> None:
    evidence = Evidence(4, half_life=math.inf, prior_strength=2.0, pools=np.asarray([0, 0, 1, 1]))
    evidence.observe(0, 0, num_passed=6, num_scored=8)
    of_pool = (6 + 1) / (8 + 2)
    assert np.allclose(evidence.rates(1), [(6 + 2 * of_pool) / 10, of_pool, 0.5, 0.5])


def test_the_start_models_completions_are_what_is_known_at_first() -> None:
    start = (np.asarray([8.0, 0.0]), np.asarray([8.0, 0.0]))
    evidence = Evidence(2, half_life=5.0, prior_strength=1.0, start=start)
    assert np.allclose(evidence.rates(0), [8.5 / 9, 0.5])
    assert np.allclose(evidence.rates(5), [4.5 / 5, 0.5])


def test_a_restored_one_goes_on_bit_for_bit_and_other_rows_are_refused() -> None:
    def fill(evidence: Evidence, positions: range) -> None:
        for position in positions:
            evidence.observe(position % 3, position, position % 5, 8)

    one, other = (Evidence(3, half_life=3.7, prior_strength=1.0) for _ in range(2))
    fill(one, range(20))
    other.restore(one.state())
    fill(one, range(20, 31))
    fill(other, range(20, 31))
    assert one.rates(31).tobytes() == other.rates(31).tobytes()
    with pytest.raises(ConfigError, match=r"rates of 3 rows and data\.train has 4; give the data"):
        Evidence(4, half_life=1.0, prior_strength=1.0).restore(one.state())
