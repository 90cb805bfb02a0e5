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
from uuid import uuid4

import pytest
import yaml

from vlrl.checkpoint import latest_checkpoint

MARKER = "VLRL_TEST_MARKER"
START_S, END_S = 240.0, 60.0

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


class Session:
    """A `vlrl` in a session of its own, as a terminal starts it; every process under it carries a marker."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.marker = folder, uuid4().hex
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from vlrl.cli.main import main; main()", *arguments],
            start_new_session=True, cwd=folder, stdout=self.log, stderr=subprocess.STDOUT,
            env={**os.environ, MARKER: self.marker},
        )  # fmt: skip

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Poll, and fail with the run's own words if it ends first."""
        deadline = time.monotonic() + START_S
        while not condition():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.02)

    def press_ctrl_c(self) -> None:
        """A terminal sends SIGINT to the whole foreground group, Ray's processes included."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, timeout_s: float = END_S) -> int:
        """Exit code, once the program and everything it started have gone."""
        code = self.process.wait(timeout_s)
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert left == [], f"left behind: {left}"
        assert list(Path("/dev/shm").glob(f"vlrl-*{self.process.pid}*")) == []
        return code

    def processes(self) -> list[str]:
        """Command lines of every living process that carries the marker."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.marker.encode() in (entry / "environ").read_bytes():
                    found.append(f"{entry.name}: {(entry / 'cmdline').read_bytes()[:80]!r}")
            except OSError:
                continue  # gone, or a zombie
        return found

    def text(self) -> str:
        """What it printed."""
        return (self.folder / "log").read_text()

    def kill(self) -> None:
        """For a test that failed: leave nothing behind."""
        self.log.close()
        for line in self.processes():
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)
        self.process.wait()


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


def test_sigterm_saves_and_resume_finishes(start: Start, file: Path, tmp_path: Path) -> None:
    run = start("sft", str(file))
    run.wait_until(begun(tmp_path))
    run.process.terminate()
    assert run.end() == 130, run.text()
    folder, state = latest_checkpoint(tmp_path / "runs" / "a")
    assert f"stopped after step {state.next_step - 1}, saved; continue with --resume" in run.text()
    assert (folder / "model" / "model.safetensors").is_file()
    assert steps(tmp_path) == list(range(state.next_step))

    last = state.next_step + 2
    run = start("sft", str(file), f"num_steps={last + 1}", "--resume", "--json")
    assert run.end(timeout_s=START_S) == 0, run.text()
    assert steps(tmp_path) == list(range(last + 1)), "a step is missing or was logged twice"
    assert latest_checkpoint(tmp_path / "runs" / "a")[1].next_step == last + 1


def test_ctrl_c_saves_and_a_second_one_abandons(start: Start, file: Path, tmp_path: Path) -> None:
    run = start("train", str(file))
    run.wait_until(begun(tmp_path))
    run.press_ctrl_c()
    assert run.end() == 130, run.text()
    folder, state = latest_checkpoint(tmp_path / "runs" / "a")
    assert f"stopped after step {state.next_step - 1}, saved; continue with --resume" in run.text()
    assert (folder / "model" / "model.safetensors").is_file()
    before = snapshot(tmp_path / "runs" / "a" / "checkpoints")

    (tmp_path / "be slow").touch()
    run = start("train", str(file), "--resume", "--json")
    run.wait_until((tmp_path / "in a step").exists)
    run.press_ctrl_c()
    time.sleep(1)
    assert run.process.poll() is None, "the first one waits for the step"
    run.press_ctrl_c()
    assert run.end(timeout_s=30) == 130, run.text()
    assert "interrupted; what was not checkpointed is lost" in run.text()
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
    assert "interrupted; what was not checkpointed is lost" in run.text()
    assert not (tmp_path / "runs" / "a" / "checkpoints").exists()


def snapshot(folder: Path) -> dict[str, Any]:
    """Every path below with its size and time of change, hidden ones too."""
    found = [(p, p.stat()) for p in folder.rglob("*")]
    return {str(p): (s.st_size, s.st_mtime_ns) for p, s in found if p.is_file()}
