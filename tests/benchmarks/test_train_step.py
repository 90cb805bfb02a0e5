"""The benchmark of the training step runs, small, and both of its sides compute the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow


def run(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "benchmarks" / "train_step.py"), *options]
    return subprocess.run(command, capture_output=True, text=True)


def test_it_prints_its_figure(root: Path) -> None:
    """Different losses of the two sides would end it with an error."""
    child = run(root, "--case", "a", "--groups", "2", "--steps", "1", "--threads", "1", "--json")
    assert child.returncode == 0, child.stderr
    figures = json.loads(child.stdout.splitlines()[-1])
    vlrl, rows = figures["vlrl"], figures["rows"]
    assert figures["speedup"] == pytest.approx(rows["median_s"] / vlrl["median_s"])
    assert figures["memory_ratio"] == pytest.approx(vlrl["peak_bytes"] / rows["peak_bytes"])
    assert vlrl["num_tokens"] < rows["num_tokens"] / 2
    assert figures["fraction_of_floor"] == pytest.approx(figures["floor_s"] / vlrl["median_s"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="the message is for machines without a GPU")
def test_the_gpu_s_case_says_that_it_needs_one(root: Path) -> None:
    child = run(root, "--case", "d")
    assert child.returncode == 2
    assert "needs an NVIDIA GPU" in child.stderr
