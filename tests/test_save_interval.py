"""A checkpoint is due by steps or by time, whichever comes first; the clock is the test's."""

from __future__ import annotations

import pytest

from vlrl.options import CheckpointConfig
from vlrl.save_interval import SaveInterval


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def saves(num_steps: int, *, step_s: float, save_s: float = 0.0, **options: float | None) -> list[int]:
    """The steps after which one is written, if each step and each save takes so long."""
    clock = Clock()
    interval, found = SaveInterval(CheckpointConfig(**options), clock=clock), []
    for step in range(num_steps):
        clock.now += step_s
        if interval.is_due(step):
            found.append(step)
            clock.now += save_s
            interval.saved()
    return found


def test_by_step_alone_time_does_not_matter() -> None:
    assert saves(10, step_s=3600, every=4) == [3, 7]


def test_by_time_alone_it_is_the_first_step_that_ends_past_it() -> None:
    assert saves(10, step_s=25, every=0, every_minutes=1) == [2, 5, 8]


def test_time_is_counted_from_the_end_of_the_last_save() -> None:
    assert saves(10, step_s=25, save_s=1000, every=0, every_minutes=1) == [2, 5, 8]


def test_whichever_comes_first() -> None:
    assert saves(12, step_s=20, every=5, every_minutes=1) == [2, 4, 7, 9]  # 4 and 9 by step, then time anew


def test_neither() -> None:
    assert saves(100, step_s=3600, every=0) == []


@pytest.mark.parametrize("minutes", [0, -1, float("nan")])
def test_no_time_is_no_interval(minutes: float) -> None:
    with pytest.raises(ValueError, match="every_minutes"):
        CheckpointConfig(every_minutes=minutes)
