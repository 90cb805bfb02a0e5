"""The staleness benchmark: its table, and that a run with a result is not repeated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RESULT = {
    "greedy_before": 0.4,
    "sampled_before": 0.3,
    "reward": 0.7,
    "mean_staleness": 0.0,
    "kl": 0.0,
    "ess": 1.0,
}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Results of four runs, and the warm starts that they began with."""
    for seed in (0, 1):
        (tmp_path / f"warm-{seed}").mkdir()
        (tmp_path / f"warm-{seed}" / "summary.json").write_text("{}")
        for name, greedy in (("0-truncated", 0.9), ("4-none", 0.8 - 0.1 * seed)):
            found = RESULT | {"greedy_after": greedy, "sampled_after": greedy - 0.1}
            (tmp_path / f"{name}-seed{seed}.json").write_text(json.dumps(found))
    return tmp_path


def test_what_has_a_result_is_only_printed(root: Path, out: Path) -> None:
    command = [sys.executable, root / "benchmarks" / "staleness.py", "--out", out, "--json"]
    command += ["--runs", "0:truncated", "4:none", "--seeds", "0", "1"]
    child = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    found = json.loads(child.stdout)
    assert [(r["staleness"], r["correction"], r["seed"]) for r in found["runs"]] == [
        (0, "truncated", 0),
        (4, "none", 0),
        (0, "truncated", 1),
        (4, "none", 1),
    ]
    fresh, old = found["summary"]
    assert (fresh["num_seeds"], fresh["greedy_after"], fresh["greedy_after_difference"]) == (2, 0.9, 0.0)
    assert old["greedy_after"] == pytest.approx(0.75)
    assert old["greedy_after_difference"] == pytest.approx(-0.15)
    assert old["sampled_after_difference"] == pytest.approx(-0.15)
