"""Ctrl-C and SIGTERM on real runs: what is saved, what comes back, and that nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sessions import START_S, Session

from vlrl.run.checkpoint import latest_checkpoint

REWARD = """
import pathlib, time
FOLDER = pathlib.Path(__file__).parent
def score(completion, answer):
    if (FOLDER / "be slow").exists():
        (FOLDER / "in a step").touch()
        time.sleep(120)
    return 0.0
"""

pytestmark = pytest.mark.timeout(600)


Start = Callable[..., Session]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    sessions: list[Session] = []

    def run(*arguments: str) -> Session:
        sessions.append(Session(tmp_path, *arguments))
        return sessions[-1]

    yield run
    for session in sessions:
        session.kill()


@pytest.fixture
def file(tmp_path: Path, tiny_model: Path) -> Path:
    (tmp_path / "reward.py").write_text(REWARD)
    tree = {
        "run": {"name": "a"},
        "model": {"path": str(tiny_model)},
        "data": {"train": {"name": "digit_sum", "options": {"num_rows": 64}}},
        "rewards": [{"name": "./reward.py:score"}],
        "scoring": {"num_tried": 0},  # the first call is in a step
        "num_steps": 2000,
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 8},
        "generator": {"max_model_len": 128, "max_num_seqs": 8},
        "checkpoint": {"every": 0},
        "sft": {"batch_size": 2},
        "logging": {"tensorboard": False},
    }
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


def steps(folder: Path) -> list[int]:
    """Steps in metrics.jsonl, a last line still being written left out."""
    path = folder / "runs" / "a" / "metrics.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.is_file() else []
    return [int(json.loads(line)["step"]) for line in lines]


def begun(folder: Path, count: int = 2) -> Callable[[], bool]:
    return lambda: len(steps(folder)) >= count


@pytest.mark.slow
def test_sigterm_saves_and_resume_finishes(start: Start, file: Path, tmp_path: Path) -> None:
    run = start("sft", str(file))
    run.wait_until(begun(tmp_path))
    run.process.terminate()
    assert run.end() == 130, run.text()
    folder, state = latest_checkpoint(tmp_path / "runs" / "a")
    assert f"finishing step {state.next_step}, then saving; again: stop now, losing all steps" in run.text()
    told = f"stopped after step {state.next_step} of 2000, saved; continue with: vlrl sft {file} --resume"
    assert told in run.text()
    assert (folder / "model" / "model.safetensors").stat().st_mode & 0o777 == 0o644, "as the umask says"
    assert steps(tmp_path) == list(range(state.next_step))

    last = state.next_step + 2
    run = start("sft", str(file), f"num_steps={last + 1}", "--resume", "--json")
    assert run.end(timeout_s=START_S) == 0, run.text()
    assert steps(tmp_path) == list(range(last + 1)), "a step is missing or was logged twice"
    assert latest_checkpoint(tmp_path / "runs" / "a")[1].next_step == last + 1
    kept = sorted(path.name for path in (tmp_path / "runs" / "a" / "configs").iterdir())
    assert kept == ["step_000000.yaml", f"step_{state.next_step:06d}.yaml"]

    run = start("sft", str(file), f"num_steps={last + 1}", "--resume", "--json")
    run.wait_until(lambda: "is finished" in run.text() or bool(run.processes().keys() - {run.process.pid}))
    assert run.end() == 0, run.text()
    assert f"is finished: {last + 1} steps are done" in run.text()
    assert "starting engines" not in run.text()


@pytest.mark.slow
def test_ctrl_c_saves_and_a_second_one_abandons(start: Start, file: Path, tmp_path: Path) -> None:
    run = start("train", str(file))
    run.wait_until(begun(tmp_path))
    run.press_ctrl_c()
    assert run.end() == 130, run.text()
    folder, state = latest_checkpoint(tmp_path / "runs" / "a")
    told = f"stopped after step {state.next_step} of 2000, saved; continue with: vlrl train {file} --resume"
    assert told in run.text()
    assert (folder / "model" / "model.safetensors").is_file()
    before = snapshot(tmp_path / "runs" / "a" / "checkpoints")

    (tmp_path / "be slow").touch()
    run = start("train", str(file), "--resume", "--json")
    run.wait_until((tmp_path / "in a step").exists)
    run.press_ctrl_c()
    time.sleep(1)
    assert run.process.poll() is None, "the first one waits for the step"
    run.press_ctrl_c()
    assert run.end() == 130, run.text()
    lost = f"losing the steps after {state.next_step}"
    assert f"finishing step {state.next_step + 1}, then saving; again: stop now, {lost}" in run.text()
    assert (
        f"what was not checkpointed is lost; continue with: vlrl train {file} --json --resume" in run.text()
    )
    assert json.loads([x for x in run.text().splitlines() if x.startswith("{")][-1])["kind"] == "Interrupted"
    assert snapshot(tmp_path / "runs" / "a" / "checkpoints") == before


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_while_engines_start_leaves_nothing(
    start: Start, file: Path, tmp_path: Path, number: int
) -> None:
    run = start("train", str(file))
    run.wait_until(lambda: "ray::GeneratorActor" in str(run.processes()))
    os.kill(run.process.pid, number)
    assert run.end() == 130, run.text()
    assert "stopping now" in run.text()
    assert "interrupted; what was not checkpointed is lost; there is no checkpoint yet" in run.text()
    assert not (tmp_path / "runs" / "a" / "checkpoints").exists()


def handles(process: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    lines = (Path("/proc") / str(process) / "status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (number - 1) & 1)


@pytest.mark.parametrize("mark", ["", "multiarray", "libtorch_cpu", "_raylet.so"])
def test_sigterm_while_the_command_starts(start: Start, file: Path, mark: str) -> None:
    """SIGTERM gives 130 and a sentence, from the first instruction on and at moments of its imports."""
    run = start("train", str(file))
    run.wait_until(lambda: handles(run.process.pid, signal.SIGTERM))
    maps = Path("/proc") / str(run.process.pid) / "maps"
    run.wait_until(lambda: mark in maps.read_text())
    run.process.terminate()
    assert run.end() == 130, run.text()
    assert "error: interrupted" in run.text() and "Traceback" not in run.text()


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["gcs_server", "raylet", "dashboard", "ray::IDLE", "ray::TrainerRank"])
def test_sigterm_while_ray_and_the_engines_start(start: Start, file: Path, tmp_path: Path, mark: str) -> None:
    run = start("train", str(file))
    run.wait_until(lambda: mark in str(run.processes()))
    run.process.terminate()
    assert run.end() == 130, run.text()
    assert "error: interrupted" in run.text() and "Traceback" not in run.text()
    assert not (tmp_path / "runs" / "a" / "checkpoints").exists()


@pytest.mark.slow
def test_a_second_run_in_the_same_folder_is_refused(start: Start, file: Path, tmp_path: Path) -> None:
    run = start("sft", str(file))
    run.wait_until(begun(tmp_path))
    second = subprocess.run(
        [sys.executable, "-c", "from vlrl.cli.main import main; main()", "sft", str(file), "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert second.returncode == 2, second.stderr
    where = tmp_path / "runs" / "a"
    assert f"another run is active in {where}: process {run.process.pid} on" in second.stderr
    run.process.terminate()
    assert run.end() == 130, run.text()
    assert steps(tmp_path) == list(range(len(steps(tmp_path))))


def snapshot(folder: Path) -> dict[str, Any]:
    """Every path below with its size and time of change, hidden ones too."""
    found = [(p, p.stat()) for p in folder.rglob("*")]
    return {str(p): (s.st_size, s.st_mtime_ns) for p, s in found if p.is_file()}
