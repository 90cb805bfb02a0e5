"""Training ends early by held-out accuracy and keeps the best weights; a resumed run does the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vlrl import grpo
from vlrl.config import Config, parse_config
from vlrl.run.checkpoint import checkpoints
from vlrl.tracking.metrics import repeatable
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_patience_ends_a_run_and_more_of_it_continues_the_same_run(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    (tmp_path / "vowels.py").write_text(
        "def score(completion, answer):\n    return sum(c in 'aeiou' for c in completion) / 20\n"
        "def same(completion, answer):\n    return 0.5\n"
    )

    def configured(name: str, patience: int) -> Config:
        held_out = {
            "name": "digit_sum",
            "options": {"split": "heldout"},
            "rewards": [f"{tmp_path}/vowels.py:same"],
        }
        tree: dict[str, Any] = {
            "run": {"name": name, "dir": str(tmp_path)},
            "model": {"path": str(tiny_model)},
            "data": {"train": {"name": "digit_sum"}, "eval": held_out},
            "rewards": [f"{tmp_path}/vowels.py:score"],
            "num_steps": 8,
            "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 8},
            "generator": {"max_model_len": 128, "max_num_seqs": 8},
            "eval": {"num_samples": 2, "during_samples": 2, "every": 1, "patience": patience},
            "checkpoint": {"every": 0, "keep": 1},
            "logging": {"tensorboard": False},
        }
        tree["eval"]["keep_best"] = True
        return parse_config(tree)

    def kept(run_dir: Path) -> list[str]:
        return [folder.name for folder in checkpoints(run_dir)]

    summary = grpo.train(configured("a", patience=2))
    run_dir = tmp_path / "a"
    selection = {"best": 0.5, "best_step": 1, "num_since": 2, "last_step": 3}
    assert (summary["num_steps"], summary["selection"]) == (3, selection)
    assert "eval.patience" in str(summary["ended_early"])
    assert kept(run_dir) == ["step_000001", "step_000003"]
    assert os.readlink(run_dir / "best") == "checkpoints/step_000001/model"
    assert (run_dir / "best" / "config.json").is_file()
    assert grpo.train(configured("a", patience=2), resume=True) == summary  # there is nothing to do

    longer = grpo.train(configured("a", patience=4), resume=True)
    whole = grpo.train(configured("b", patience=4))
    assert longer["num_steps"] == whole["num_steps"] == 5
    assert kept(run_dir) == kept(tmp_path / "b") == ["step_000001", "step_000005"]
    resumed, undisturbed = (
        [repeatable(step) for step in read_metrics(tmp_path / name / METRICS_FILE)] for name in "ab"
    )
    assert resumed == undisturbed
