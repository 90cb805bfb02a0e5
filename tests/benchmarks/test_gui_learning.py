"""Tiny GUI agents learn on real pages and real desktops, on three seeds: from demonstrations over GRPO."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1700),
    pytest.mark.parametrize("seed", [0, 1, 2]),
]


def sampled_successes(root: Path, out: Path, case: str, seed: int, num_steps: int) -> tuple[float, float]:
    """Held-out success at temperature 1, of the warm start and after GRPO."""
    command = [sys.executable, root / "benchmarks" / "gui_learning.py", "--cases", case, "--json"]
    command += ["--seeds", str(seed), "--steps", str(num_steps), "--every", str(num_steps)]
    command += ["--heldout", "128", "--out", out]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    [result] = json.loads(child.stdout)["results"]
    first, last = (result["evaluations"][i]["heldout/accuracy_sampled"] for i in (0, -1))
    return first, last


def test_a_dialog_s_button_is_learned_on_pages(seed: int, root: Path, tmp_path: Path) -> None:
    """Measured: 0.273 to 0.922, 0.195 to 0.898, 0.242 to 0.891."""
    before, after = sampled_successes(root, tmp_path, "miniwob", seed, num_steps=40)
    assert before <= 0.35
    assert after >= 0.8


def test_a_command_is_learned_in_a_terminal(seed: int, root: Path, tmp_path: Path) -> None:
    """Measured, with 64 held-out episodes: 0.078 to 0.734, 0.156 to 0.797, 0.172 to 0.750."""
    before, after = sampled_successes(root, tmp_path, "x11", seed, num_steps=20)
    assert before <= 0.35
    assert after >= before + 0.3
