"""The benchmark of the visual environments runs, small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_it_prints_its_figures(root: Path) -> None:
    names = ["visual/clocks", "visual/frozen_lake"]
    command = [
        sys.executable,
        root / "benchmarks" / "envs.py",
        "--seconds",
        "0.01",
        "--json",
        "--only",
        *names,
    ]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(child.stdout)
    assert list(figures["envs"]) == names
    assert all(figure["observations_per_s"] > 0 for figure in figures["envs"].values())
