"""Law 8 over whole runs: the models of two runs of one seed are equal byte for byte, on a busy machine too.

The quickstart as a user runs it, warm start included: once by itself, once beside two busy processes, and
once more from its middle checkpoint. VLRL_REPEAT_STEPS makes it shorter while one works on it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from busy import busy_machine

from vlrl.tracking.metrics import repeatable

ROOT = Path(__file__).parent.parent.parent
NUM_STEPS = {"digits": 240, "turns": 60}
NAMES = {"digits": "quickstart", "turns": "quickstart_turns"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]


def write_configs(task: str, folder: Path) -> int:
    """The task's two configs with a checkpoint in the middle; the steps that they run."""
    steps = int(os.environ.get("VLRL_REPEAT_STEPS", NUM_STEPS[task]))
    folder.mkdir()
    name = NAMES[task]
    warm = yaml.safe_load((ROOT / "configs" / f"{name}_sft.yaml").read_text())
    warm["num_steps"] = warm["num_steps"] * steps // NUM_STEPS[task]
    (folder / f"{name}_sft.yaml").write_text(yaml.safe_dump(warm))
    tree = yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text())
    tree |= {"num_steps": steps, "checkpoint": {"every": steps // 2, "keep": 3}}
    tree["eval"].pop("target_accuracy")  # a shorter run need not reach it
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(tree))
    return steps


def vlrl(*arguments: object, busy: bool) -> None:
    program = str(Path(sys.executable).parent / "vlrl")
    environment = os.environ | {"RAY_worker_niceness": "0"}  # 15 by default, which is hardly above 19
    with busy_machine(niceness=19) if busy else nullcontext():
        child = subprocess.run(
            [program, *map(str, arguments), "--json"],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert child.returncode == 0, child.stdout


def quickstart(task: str, configs: Path, out: Path, *, busy: bool) -> Path:
    vlrl("quickstart", "--seed", 0, "--task", task, "--configs", configs, "--out", out, busy=busy)
    return out


def metrics(run: Path) -> list[dict[str, Any]]:
    """Every step's numbers but those that a clock made."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [repeatable(json.loads(line)) for line in lines]


def assert_same(found: Path, expected: Path) -> None:
    """Metrics first: they name the step and the number that differed first."""
    for ours, theirs in zip(metrics(found), metrics(expected), strict=True):
        differing = {
            name: (ours.get(name), value) for name, value in theirs.items() if ours.get(name) != value
        }
        assert not differing, f"{found} at step {theirs['step']}: {differing}"
    digests = [
        hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()
        for run in (found, expected)
    ]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("task", list(NUM_STEPS))
def test_a_busy_machine_and_a_resumed_run_give_the_same_model(task: str, tmp_path: Path) -> None:
    configs = tmp_path / "configs"
    steps = write_configs(task, configs)
    quiet = quickstart(task, configs, tmp_path / "quiet" / "run", busy=False)
    busy = quickstart(task, configs, tmp_path / "busy" / "run", busy=True)
    assert_same(busy.with_name("run-sft"), quiet.with_name("run-sft"))
    assert_same(busy, quiet)

    resumed = tmp_path / "resumed" / "run"
    shutil.copytree(quiet, resumed)
    for checkpoint in sorted((resumed / "checkpoints").iterdir()):
        if int(checkpoint.name.removeprefix("step_")) > steps // 2:
            shutil.rmtree(checkpoint)
    (resumed / "summary.json").unlink()
    shutil.rmtree(resumed / "model")
    vlrl(
        "train", configs / f"{NAMES[task]}.yaml", f"run.dir={resumed.parent}", "run.name=run", "run.seed=0",
        f"model.path={quiet.with_name('run-sft') / 'model'}", "--resume", busy=True,
    )  # fmt: skip
    assert_same(resumed, quiet)
