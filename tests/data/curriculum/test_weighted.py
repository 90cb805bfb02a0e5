"""Rows in proportion to weights: exact counts an epoch, and checks of a stranger's weights."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.config.data import SamplerConfig
from vlrl.data.curriculum.weighted import RowWeights, StaticOrder, Weighted
from vlrl.errors import ConfigError

SEEDS = st.integers(0, 1000)


def epoch(weights: np.ndarray, number: int, seed: int) -> Counter[int]:
    chosen, ends = Weighted(weights.size, seed), np.cumsum(weights)
    size = weights.size
    return Counter(chosen.row(position, ends) for position in range(number * size, (number + 1) * size))


@given(size=st.integers(1, 60), seed=SEEDS, number=st.integers(0, 5))
def test_equal_weights_are_epochs(size: int, seed: int, number: int) -> None:
    assert epoch(np.ones(size), number, seed) == Counter(range(size))


@given(weights=st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]), min_size=2, max_size=40), seed=SEEDS)
def test_a_row_comes_as_often_as_its_weight_says_to_within_one(weights: list[float], seed: int) -> None:
    array = np.asarray(weights)
    if not array.any():
        return
    counts = epoch(array, 2, seed)
    for row, expected in enumerate(array.size * array / array.sum()):
        assert abs(counts[row] - expected) < 1 + 1e-9
        assert expected > 0 or row not in counts


def test_rare_rows_come_in_the_long_run() -> None:
    array = np.asarray([1.0] * 9 + [0.1])
    total = sum((epoch(array, number, 0) for number in range(400)), Counter[int]())
    assert total[9] / total.total() == pytest.approx(0.1 / 9.1, rel=0.4)


def test_the_order_follows_seed_and_position_alone() -> None:
    weights = SamplerConfig(name="band", adaptive=False, start_rates=Path("x"))
    rates = np.linspace(0, 1, 50)
    orders = [
        StaticOrder(rates, np.asarray([], np.int64), RowWeights(weights, "data.train"), seed)
        for seed in (0, 0, 1)
    ]
    rows = [[order.index(p) for p in (7, 3, 500)] + [order.replacement(3, 1)] for order in orders]
    assert rows[0] == rows[1] != rows[2]


def test_unusable_rows_and_those_outside_the_band_never_come() -> None:
    config = SamplerConfig(
        name="band", options={"low": 0.3, "high": 0.75}, adaptive=False, start_rates=Path("x")
    )
    rates = np.linspace(0, 1, 11)
    order = StaticOrder(rates, np.asarray([5]), RowWeights(config, "data.train"), seed=0)
    rows = {order.index(p) for p in range(44)} | {order.replacement(p, 2) for p in range(44)}
    assert rows == {3, 4, 6, 7}


def test_easy_rows_come_before_hard_ones() -> None:
    config = SamplerConfig(name="easy_to_hard", adaptive=False, start_rates=Path("x"))
    rates = np.linspace(1, 0, 20)
    order = StaticOrder(rates, np.asarray([], np.int64), RowWeights(config, "data.train"), seed=0)
    rows = [order.index(p) for p in range(40)]
    assert max(rows[:4]) < 8
    assert np.mean(rows[:10]) < np.mean(rows[30:])
    assert sorted(rows[20:]) == list(range(20))  # all have come in: an epoch


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("rates[:1]", r"must return 3 finite weights .*shape \(1,\)"),
        ("rates - 2", "3 that are none"),
        ("rates * float('nan')", "3 that are none"),
        ("rates * 0", "gives every row the weight 0 at pass rates from 0 to 1; widen data.train.sampler"),
    ],
)
def test_a_strangers_weights_are_checked(tmp_path: Path, body: str, named: str) -> None:
    (tmp_path / "mine.py").write_text(f"def weigh(rates):\n    return {body}\n")
    weights = RowWeights(SamplerConfig(name=f"{tmp_path}/mine.py:weigh"), "data.train")
    with pytest.raises(ConfigError, match=named):
        weights.of(np.asarray([0.0, 0.5, 1.0]), 0.0)
