"""The learning rate is a function of the step alone."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vlrl.config.memory import OptimConfig
from vlrl.trainer.schedule import learning_rate


def rates(num_steps: int = 8, **options: Any) -> list[float]:
    config = OptimConfig(**{"lr": 2.0, **options})
    return [learning_rate(config, step, num_steps) for step in range(num_steps)]


def test_constant_is_constant() -> None:
    assert rates() == [2.0] * 8


def test_linear_falls_by_equal_shares_and_never_reaches_zero() -> None:
    assert rates(4, schedule="linear") == [2.0, 1.5, 1.0, 0.5]


def test_cosine_follows_the_half_wave() -> None:
    expected = [1 + math.cos(math.pi * s / 4) for s in range(4)]
    assert rates(4, schedule="cosine") == pytest.approx(expected)


def test_warm_up_rises_linearly_to_the_peak_and_the_decay_starts_there() -> None:
    assert rates(6, schedule="linear", warmup_steps=2) == [1.0, 2.0, 2.0, 1.5, 1.0, 0.5]


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_rate_stays_between_floor_and_peak(schedule: str) -> None:
    found = rates(50, schedule=schedule, min_lr_ratio=0.25)
    assert found[0] == 2.0
    assert found == sorted(found, reverse=True)
    assert min(found) >= 0.5


def test_a_run_shorter_than_its_warm_up_is_no_error() -> None:
    assert rates(2, warmup_steps=4, schedule="cosine") == [0.5, 1.0]
