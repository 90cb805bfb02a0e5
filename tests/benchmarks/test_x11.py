"""The benchmark of real desktops runs, small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_it_prints_its_figures(root: Path) -> None:
    small = ["--desktops", "1", "--launches", "1", "--repeats", "1", "--seconds", "0.2"]
    command = [sys.executable, root / "benchmarks" / "x11.py", "--json", *small]
    child = subprocess.run(command, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    figures = json.loads(child.stdout)
    assert figures["targets"].keys() < figures.keys()
    assert figures["click_ms"] >= figures["floor_ms"] and figures["left_processes"] == 0
