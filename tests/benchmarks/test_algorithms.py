"""The comparison of algorithms: its table and chart, and that a run with a result is not repeated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def result(preset: str, seed: int, evaluations: list[tuple[int, float]]) -> str:
    """A line of the results: (tokens, greedy accuracy) by evaluation."""
    found = [
        {
            "step": 20 * number,
            "num_tokens": tokens,
            "heldout/accuracy_greedy": accuracy,
            "heldout/accuracy_sampled": accuracy - 0.1,
        }
        for number, (tokens, accuracy) in enumerate(evaluations)
    ]
    means = {"entropy": 0.2, "kl": 0.1, "step_s": 1.0, "train_s": 0.5}
    line = {"task": "digits", "preset": preset, "seed": seed, "commit": "abc", "num_heldout": 100}
    return json.dumps({**line, **means, "evaluations": found}) + "\n"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two seeds of one preset, one of another, which generated fewer tokens in all."""
    path = tmp_path / "results.jsonl"
    path.write_text(
        result("grpo", 0, [(0, 0.6), (1000, 0.8), (2000, 0.9), (3000, 0.99)])
        + result("grpo", 1, [(0, 0.6), (1000, 0.7), (1900, 0.8), (2800, 0.85)])
        + result("cispo", 0, [(0, 0.6), (1500, 0.95), (2500, 0.97)])
    )
    return path


def report(root: Path, results: Path, *options: str) -> dict[str, Any]:
    """What the program prints as JSON."""
    command = [sys.executable, root / "benchmarks" / "algorithms.py", "--results", results, "--json"]
    child = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=True, timeout=600, cwd=results.parent
    )
    found: dict[str, Any] = json.loads(child.stdout)
    return found


def test_presets_are_compared_at_equal_tokens(root: Path, results: Path) -> None:
    best, second = report(root, results, "--report", "--image", "curves.png")["rows"]
    assert (best["preset"], best["greedy"], best["by_seed"]) == ("cispo", 0.97, [0.97])
    # The shortest run generated 2,500 tokens: what was found after more of them is not compared.
    assert (second["preset"], second["by_seed"]) == ("grpo", [0.9, 0.8])
    assert second["greedy"] == pytest.approx(0.85) and second["sampled"] == pytest.approx(0.75)
    assert second["tokens_to_target"] == [2000, None]
    low, high = second["interval"]  # Wilson's, of 85 % of 200 answers
    assert (low, high) == (pytest.approx(0.794, abs=1e-3), pytest.approx(0.893, abs=1e-3))
    assert (results.parent / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_with_a_result_is_not_repeated(root: Path, results: Path) -> None:
    before = results.read_text()
    rows = report(root, results, "--presets", "grpo", "--seeds", "0", "1")["rows"]
    assert len(rows) == 2
    assert results.read_text() == before
    assert not (results.parent / "runs").exists()
