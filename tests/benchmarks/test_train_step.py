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


SMALL = ("--steps", "1", "--rounds", "1", "--max-rounds", "1", "--warmup", "1", "--threads", "1", "--json")


def test_it_prints_its_figure(root: Path) -> None:
    """Different losses of the two sides would end it with an error."""
    child = run(root, "--case", "a", "--only", "trainer", "--groups", "2", *SMALL)
    assert child.returncode == 0, child.stderr
    figures = json.loads(child.stdout)
    alone = figures["trainer"]
    packed, rows = alone["packed"], alone["rows"]
    assert figures["against"] == "rows"
    assert figures["speedup"] == figures["speedup_rows"] == pytest.approx(rows["median"] / packed["median"])
    assert figures["memory_ratio"] == pytest.approx(packed["peak_bytes"] / rows["peak_bytes"])
    assert alone["num_tokens"] < alone["num_slots_of_rows"] / 2
    assert alone["fraction_of_floor"] == pytest.approx(alone["floor"]["seconds"] / packed["median"])


def test_a_whole_step_stands_beside_trl_s(root: Path) -> None:
    """Unequal prompts or numbers of tokens would end it with an error."""
    assert (root / ".venv-trl").exists(), "TRL's environment is not there: make trl-env, or make test-slow"
    child = run(root, "--case", "a", "--only", "whole", "--groups", "2", *SMALL)
    assert child.returncode == 0, child.stderr
    figures = json.loads(child.stdout)
    vlrl, trl = (figures["whole"][name] for name in ("vlrl", "trl"))
    assert figures["against"] == "trl"
    assert figures["speedup"] == pytest.approx(trl["median"] / vlrl["median"])
    assert figures["memory_ratio"] == pytest.approx(vlrl["peak_bytes"] / trl["peak_bytes"])
    assert len(vlrl["process_bytes"]) > 2, "driver, engine and rank"


@pytest.mark.skipif(torch.cuda.is_available(), reason="the message is for machines without a GPU")
def test_the_gpu_s_case_says_that_it_needs_one(root: Path) -> None:
    child = run(root, "--case", "d")
    assert child.returncode == 2
    assert "needs an NVIDIA GPU" in child.stderr
