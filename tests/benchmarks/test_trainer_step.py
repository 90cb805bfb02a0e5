"""The benchmark of the trainer's step runs, small, and both of its layouts compute the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_it_prints_its_figure(root: Path) -> None:
    sizes = {"groups": 2, "group-size": 2, "image-tokens": 16, "prompt-tokens": 8, "completion-tokens": 4}
    options = [f"--{name}={size}" for name, size in {**sizes, "steps": 1}.items()]
    command = [sys.executable, root / "benchmarks" / "trainer_step.py", "--json", *options]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(child.stdout.splitlines()[-1])
    assert figures["speedup"] == pytest.approx(figures["rows_seconds"] / figures["tree_seconds"])
    assert abs(figures["mean_logprob_tree_minus_rows"]) < 1e-5
