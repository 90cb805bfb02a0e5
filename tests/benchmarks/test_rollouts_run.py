"""The comparison of steps whose rollouts are kept with their neighbours."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "rollouts_run.py"


def test_the_cost_of_keeping_is_told_from_a_trend() -> None:
    noise = random.Random(0)
    seconds = [1.0 + 0.002 * step + noise.gauss(0, 0.01) for step in range(200)]
    for step in range(0, 200, 4):  # a part at the step's end, the rest within the next one
        seconds[step] += 0.01
        seconds[step + 1] += 0.03
    found = runpy.run_path(str(FILE))["compared"](seconds)
    assert found["num_pairs"] == 48
    assert found["added_s"] == pytest.approx(0.04, abs=0.01)
    assert found["step_s"] == pytest.approx(1.2, abs=0.02)
    assert found["low_share"] < found["added_share"] < found["high_share"]
    assert found["low_share"] > 0
