"""Weights of rows: closed forms, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from vlrl.data.curriculum.weights import band, easy_to_hard, hardness, learnability
from vlrl.errors import ConfigError

RATES = np.asarray([0.0, 0.25, 0.5, 1.0])


def test_learnability_is_the_variance_of_a_pass() -> None:
    assert learnability(RATES, explore=0.0).tolist() == [0.0, 3 / 7, 4 / 7, 0.0]
    assert np.allclose(
        learnability(RATES, explore=0.1), [0.025, 0.9 * 3 / 7 + 0.025, 0.9 * 4 / 7 + 0.025, 0.025]
    )
    assert learnability(RATES).sum() == pytest.approx(1.0)


def test_hardness_is_the_share_that_fails() -> None:
    assert np.allclose(hardness(RATES, explore=0.0), np.asarray([1.0, 0.75, 0.5, 0.0]) / 2.25)
    assert np.allclose(hardness(RATES, explore=1.0), 0.25)


def test_rows_without_any_weight_come_uniformly() -> None:
    assert learnability(np.asarray([0.0, 1.0]), explore=0.0).tolist() == [0.5, 0.5]


def test_a_band_has_both_its_ends() -> None:
    assert band(RATES, low=0.25, high=0.5).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert band(RATES).tolist() == [0.0, 1.0, 1.0, 0.0]


def test_the_easiest_rows_come_first_and_then_all() -> None:
    def known(epochs: float, **options: float) -> list[int]:
        return np.flatnonzero(easy_to_hard(RATES, epochs=epochs, **options)).tolist()

    assert known(0.0) == [3]
    assert known(0.25, first=0.25) == [2, 3]  # c = 0.25 · 0.75 + 0.25 = 0.4375: ⌈1.75⌉ rows
    assert known(1.0) == known(7.0) == [0, 1, 2, 3]
    assert known(1.0, epochs_to_all=2.0, first=0.5) == [1, 2, 3]
    alike = np.asarray([0.5, 0.5, 0.1])
    assert np.flatnonzero(easy_to_hard(alike, epochs=0.0)).tolist() == [0, 1]


def test_wrong_options_are_refused_by_name() -> None:
    for function, options, named in (
        (learnability, {"explore": 1.5}, "explore=1.5"),
        (band, {"low": 0.9, "high": 0.1}, "low=0.9 is above high=0.1"),
        (easy_to_hard, {"epochs": 0.0, "first": 0.0}, "first=0"),
        (easy_to_hard, {"epochs": 0.0, "epochs_to_all": 0.0}, "epochs_to_all=0"),
    ):
        with pytest.raises(ConfigError, match=named):
            function(RATES, **options)
