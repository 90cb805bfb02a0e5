"""The benchmark of a weight update runs, small, and its figures belong together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_it_prints_its_figures(root: Path) -> None:
    options = ["--sizes", "tiny", "--rounds", "2", "--json"]
    command = [sys.executable, root / "benchmarks" / "weight_sync.py", *options]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    tiny = json.loads(child.stdout)["tiny"]
    assert 0 < tiny["pause_ms"] <= tiny["pause_ms_median"]
    assert tiny["load_fraction"] == pytest.approx(tiny["memcpy_ms"] / tiny["pause_ms"])
    assert tiny["pause_beyond_copy_ms"] == pytest.approx(tiny["pause_ms"] - tiny["memcpy_ms"])
