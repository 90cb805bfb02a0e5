"""The benchmark of a run's start runs, once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml


@pytest.mark.slow
def test_it_prints_its_figures(root: Path, tiny_model: Path, tmp_path: Path) -> None:
    tree = {
        "run": {"name": "a"},
        "model": {"path": str(tiny_model)},
        "data": {"train": {"name": "digit_sum"}},
        "rewards": [{"name": "answer_exact"}],
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 8},
        "generator": {"max_model_len": 256},
    }
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump(tree))
    command = [sys.executable, root / "benchmarks" / "start.py", "--rounds", "1", "--json", config]
    child = subprocess.run(command, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    [figures] = json.loads(child.stdout).values()
    least = {name: value[0] for name, value in figures.items() if name != "loads"}
    order = ("first line", "loading the processor", "starting engines", "first step")
    seconds = [least[f"seconds: {name}"] for name in order]
    assert seconds == sorted(seconds)
    by_process = {name: least[f"cpu_seconds: {name}"] for name in ("driver", "engine", "rank", "Ray", "all")}
    assert min(by_process.values()) > 0
    assert by_process["all"] == pytest.approx(sum(by_process.values()) - by_process["all"], abs=1.0)
