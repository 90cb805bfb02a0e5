"""Orders and mixtures: permutations that are functions of the seed, and stay what they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.data import mixture
from vlrl.data.mixture import Mixture
from vlrl.data.order import FullOrder, Order, WindowOrder
from vlrl.seeds import derive_seed

SEEDS = st.integers(0, 1000)


def epoch(order: Order, number: int, size: int) -> list[int]:
    return [order.index(number * size + place) for place in range(size)]


@given(size=st.integers(1, 50), seed=SEEDS)
def test_epochs_are_permutations(size: int, seed: int) -> None:
    order = FullOrder(size, seed)
    assert all(sorted(epoch(order, number, size)) == list(range(size)) for number in (0, 1, 7))
    assert all(0 <= order.replacement(position, 1) < size for position in range(5))


def test_the_order_is_pinned() -> None:
    """Runs resumed under a newer vlrl go on with the rows they would have had."""
    expected = np.random.default_rng(derive_seed(3, "epoch", 1)).permutation(20)
    assert epoch(FullOrder(20, seed=3), 1, 20) == expected.tolist()
    sources = [Mixture([1.0, 1.0], seed=3).locate(p)[0] for p in range(12)]
    assert sources == [0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    assert epoch(WindowOrder([3, 2, 3], 2, seed=3), 0, 8) == [4, 3, 2, 0, 1, 5, 6, 7]


@given(
    sizes=st.lists(st.integers(0, 6), min_size=1, max_size=12).filter(any),
    window=st.integers(1, 5),
    seed=SEEDS,
)
def test_windows_hold_few_chunks_and_lose_no_row(sizes: list[int], window: int, seed: int) -> None:
    order, total = WindowOrder(sizes, window, seed), sum(sizes)
    chunk_of = np.repeat(np.arange(len(sizes)), sizes)
    for number in (0, 3):
        rows = epoch(order, number, total)
        assert sorted(rows) == list(range(total))
        # A chunk is not come back to once `window` others have been met after its first row.
        met = [int(chunk_of[row]) for row in rows]
        for chunk in set(met):
            first, last = met.index(chunk), len(met) - 1 - met[::-1].index(chunk)
            assert len(set(met[first : last + 1])) <= window
    replacement = order.replacement(0, 1)
    assert replacement == WindowOrder(sizes, window, seed).replacement(0, 1)
    assert 0 <= replacement < total


@given(weights=st.lists(st.floats(0.1, 10), min_size=2, max_size=5), seed=SEEDS)
def test_a_source_goes_through_its_own_positions_in_turn(weights: list[float], seed: int) -> None:
    """Also across blocks, and asked for backwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixture, "BLOCK", 16)
        located = [Mixture(weights, seed).locate(position) for position in range(100)]
        backwards = Mixture(weights, seed)
        assert [backwards.locate(position) for position in reversed(range(100))] == located[::-1]
    for source in range(len(weights)):
        own = [position for number, position in located if number == source]
        assert own == list(range(len(own)))


def test_shares_follow_the_weights() -> None:
    mixture = Mixture([1.0, 2.0, 5.0], seed=1)
    counts = np.bincount([mixture.locate(position)[0] for position in range(20_000)])
    assert np.allclose(counts / 20_000, [1 / 8, 2 / 8, 5 / 8], atol=0.015)
