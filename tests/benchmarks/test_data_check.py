"""The benchmark of the data check runs, small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_it_prints_its_figure(root: Path) -> None:
    command = [
        sys.executable,
        root / "benchmarks" / "data_check.py",
        "--rows",
        "6",
        "--workers",
        "1",
        "--json",
    ]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(child.stdout)
    assert figures["num_rows"] == 6
    assert figures["num_bad"] == 0
    assert figures["seconds"] > 0
