"""The benchmark of the driver's turn runs, small: every turn is played, and an image costs more than text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_turn_with_a_screenshot_costs_more(root: Path) -> None:
    short = ["--episodes", "4", "--turns", "2", "--rounds", "1"]
    command = [sys.executable, "benchmarks/driver.py", *short, "--json"]
    child = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(child.stdout)
    for turn in ("screenshot_turn", "text_turn"):
        assert 0 < found[turn]["loop_ms"] < found[turn]["driver_ms"]
    assert found["megapixel"]["driver_ms"] > 0
