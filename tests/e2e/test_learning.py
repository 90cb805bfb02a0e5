"""What `vlrl quickstart` promises, on three seeds but for one task: a weak warm start, and GRPO lifts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1700)]
on_three_seeds = pytest.mark.parametrize("seed", [0, 1, 2])


def quickstart(seed: int, out: Path, *options: str) -> dict[str, Any]:
    """Run the command; its summary. It fails if the target of its config is missed."""
    command = [
        str(Path(sys.executable).parent / "vlrl"),
        "quickstart",
        "--seed",
        str(seed),
        "--json",
        *options,
    ]
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, summary
    return summary


@on_three_seeds
def test_the_quickstart_learns(seed: int, tmp_path: Path) -> None:
    summary = quickstart(seed, tmp_path / "run")
    assert 0.2 <= summary["heldout_accuracy_before_sampled"] <= 0.6
    assert summary["heldout_accuracy_after"] >= 0.9
    assert Path(summary["report"]).exists()


@on_three_seeds
def test_the_quickstart_learns_in_bfloat16(seed: int, tmp_path: Path) -> None:
    summary = quickstart(seed, tmp_path / "run", "model.dtype=bfloat16")
    assert summary["heldout_accuracy_after"] >= 0.9


@on_three_seeds
def test_episodes_of_several_turns_are_learned(seed: int, tmp_path: Path) -> None:
    summary = quickstart(seed, tmp_path / "run", "--task", "turns")
    assert summary["heldout_accuracy_before_sampled"] <= 0.3
    assert summary["heldout_accuracy_after_sampled"] >= 0.8
    assert 'class="film' in Path(summary["report"]).read_text()


@on_three_seeds
def test_an_odd_button_is_learned_on_a_desktop(seed: int, tmp_path: Path) -> None:
    summary = quickstart(seed, tmp_path / "run", "--task", "gui")
    assert summary["heldout_accuracy_before_sampled"] <= 0.3
    assert summary["heldout_accuracy_after_sampled"] >= 0.8


@on_three_seeds
def test_two_lights_are_put_out_more_often_than_the_warm_start_does(seed: int, tmp_path: Path) -> None:
    summary = quickstart(seed, tmp_path / "run", "--task", "lights")
    before, after = (summary[f"heldout_accuracy_{when}_sampled"] for when in ("before", "after"))
    assert before <= 0.3
    assert after >= before + 0.3


@on_three_seeds
def test_two_adapters_learn_to_work_together(seed: int, tmp_path: Path) -> None:
    """Measured: 0.676 to 0.895 of 256 episodes with seed 0, 0.363 to 0.723 with seed 1."""
    summary = quickstart(seed, tmp_path / "run", "--task", "policies")
    before, after = (summary[f"heldout_accuracy_{when}_sampled"] for when in ("before", "after"))
    assert before <= 0.75  # the warm start is not what solves it
    assert after >= before + 0.15  # over three standard deviations of the difference
    assert list(summary["policies"]) == ["giver", "guesser"]
