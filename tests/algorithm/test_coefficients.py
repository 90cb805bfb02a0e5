"""Adaptive coefficients: their papers' steps by hand, fixed points, and what a checkpoint keeps."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.algorithm.penalties.coefficients import Coefficients, adapted_entropy, adapted_kl
from vlrl.config import Config, parse_config
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.errors import ConfigError

KL = {"kl_coef": 0.2, "kl_adaptive": {"target": 0.1, "horizon": 1280}}
ENTROPY = {"entropy_adaptive": {"target": 0.2, "increment": 0.005, "largest": 0.012}}


def config(*overrides: str, **sections: Any) -> Config:
    tree = {"model": {"path": "m"}, "data": {"train": "digit_sum"}, "rewards": "answer_exact", **sections}
    return parse_config(tree, overrides=overrides)


@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        (6.0, 0.2),  # at the target
        (6.6, 0.2 * 1.01),  # a tenth above, K_β 0.1
        (60.0, 0.2 * 1.02),  # errors are clipped at a fifth
        (0.0, 0.2 * 0.98),
    ],
)
def test_zieglers_step_by_hand(kl: float, expected: float) -> None:
    assert adapted_kl(0.2, kl, target=6.0, gain=0.1) == pytest.approx(expected)


@given(st.floats(1e-4, 10), st.floats(0, 100), st.floats(1e-3, 1))
def test_the_kl_coefficient_moves_towards_its_target_and_stays_positive(
    coef: float, kl: float, gain: float
) -> None:
    found = adapted_kl(coef, kl, target=1.0, gain=gain)
    assert found > 0 and (found - coef) * (kl - 1.0) >= 0
    assert abs(found / coef - 1) <= 0.2 * gain + 1e-9


def test_in_a_toy_where_kl_falls_with_its_coefficient_it_reaches_the_target() -> None:
    algorithm = AlgorithmConfig.model_validate(KL)
    found = Coefficients.first(algorithm)
    for _ in range(400):
        found = found.after(0.5 / (1 + 10 * found.kl), 1.0, algorithm, num_samples=128)
    assert 0.5 / (1 + 10 * found.kl) == pytest.approx(0.1, rel=1e-3)


def test_skyworks_step_by_hand() -> None:
    step = {"target": 0.2, "increment": 0.005, "largest": 0.012}
    assert adapted_entropy(0.0, 0.1, **step) == pytest.approx(0.005)
    assert adapted_entropy(0.01, 0.1, **step) == pytest.approx(0.012)
    assert adapted_entropy(0.01, 0.3, **step) == pytest.approx(0.005)
    assert adapted_entropy(0.001, 0.3, **step) == 0.0
    assert adapted_entropy(0.01, 0.2, **step) == 0.01


def test_there_is_no_bonus_while_the_entropy_is_above_its_target() -> None:
    algorithm = AlgorithmConfig.model_validate(ENTROPY)
    found, bonuses = Coefficients.first(algorithm), []
    for entropy in (0.1, 0.15, 0.25, 0.1):
        found = found.after(0.0, entropy, algorithm, num_samples=8)
        bonuses.append(found.bonus)
    assert bonuses == pytest.approx([0.005, 0.01, 0.0, 0.01])
    assert found.entropy == pytest.approx(0.01)


def test_what_does_not_adapt_stays_the_configs() -> None:
    plain = AlgorithmConfig(kl_coef=0.1, entropy_coef=0.01)
    assert Coefficients.first(plain).after(9.0, 9.0, plain, 8) == Coefficients(0.1, 0.01, 0.01)
    saved = asdict(Coefficients(0.7, 0.03, 0.0))
    assert Coefficients.restored(saved, plain) == Coefficients(0.1, 0.01, 0.01)
    assert Coefficients.restored(saved, AlgorithmConfig.model_validate(KL)) == Coefficients(0.7, 0.0, 0.0)
    both = AlgorithmConfig.model_validate(KL | ENTROPY)
    assert Coefficients.restored(saved, both) == Coefficients(0.7, 0.03, 0.0)
    assert Coefficients.restored({}, both) == Coefficients.first(both)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["algorithm.kl_adaptive={target: 0.1}"], "kl_adaptive has no effect with kl_coef=0"),
        (["algorithm.kl_coef=0.1", "algorithm.kl_adaptive={target: 0}"], "greater than 0"),
        (
            ["algorithm.kl_coef=0.1", "algorithm.kl_adaptive={target: 0.1, horizon: 10}"],
            "horizon=10 is below the",
        ),
        (
            ["algorithm.entropy_coef=0.5", "algorithm.entropy_adaptive={target: 1}"],
            r"entropy_coef=0.5.* is above algorithm.entropy_adaptive.largest=0.1",
        ),
        (["algorithm.reference.every=10"], "reference.every has no effect with kl_coef=0"),
        (["algorithm.kl_coef=0.1", "algorithm.reference.mix=0.1"], "mix=0.1 has no effect with every=null"),
        (
            ["algorithm.kl_coef=0.1", "algorithm.reference.every=10", "lora.rank=4"],
            "reference.every=10 with lora",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(*overrides)


def test_groups_without_advantages_are_trained_for_an_adaptive_entropy() -> None:
    assert AlgorithmConfig.model_validate(ENTROPY).trains_all_groups
    assert not AlgorithmConfig().trains_all_groups
