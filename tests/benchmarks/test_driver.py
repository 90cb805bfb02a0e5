"""The benchmark of the driver's turn runs, small: every turn is played, and an image costs more than text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_turn_with_a_screenshot_costs_a_worker_more_and_the_driver_little(root: Path) -> None:
    short = ["--episodes", "4", "--turns", "2", "--rounds", "1", "--workers", "1"]
    command = [sys.executable, "benchmarks/driver.py", *short, "--json"]
    child = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(child.stdout)
    assert 0 < found["driver_ms_per_turn"] < found["worker_ms_per_turn"]
    assert found["text_turn"]["worker_ms"] < found["worker_ms_per_turn"]
    assert found["driver_plays"]["text_ms"] < found["driver_plays"]["screenshot_ms"]
    assert 0 < found["driver_bytes_per_turn"] <= 2048
