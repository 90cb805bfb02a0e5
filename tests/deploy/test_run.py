"""deploy/run.py: which command it becomes, and how it ends when the nodes do not come."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "deploy" / "run.py"
CONFIG = str(FILE.parents[1] / "configs" / "quickstart.yaml")


@pytest.fixture(scope="module")
def vlrl_command() -> Callable[[list[str]], list[str]]:
    spec = importlib.util.spec_from_file_location("deploy_run", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.vlrl_command


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PYTHONPATH": f"{FILE.parents[1]}{os.pathsep}{os.environ['PYTHONPATH']}",
        **environment,
    }
    return subprocess.run([sys.executable, FILE, *arguments], env=env, capture_output=True, text=True)


def test_a_run_is_resumed_if_it_has_a_checkpoint(
    vlrl_command: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    given = ["train", CONFIG, "--json", f"run.dir={tmp_path}", "run.name=a"]
    first = ["vlrl", *given, "ray.address=auto"]
    assert vlrl_command(given) == first
    (tmp_path / "a" / "checkpoints" / "step_000003").mkdir(parents=True)
    assert vlrl_command(given) == [*first, "--resume"]
    assert vlrl_command([*given, "--resume"]) == [*first, "--resume"]
    other = [*given[:-1], "run.name=b"]
    assert vlrl_command(other) == ["vlrl", *other, "ray.address=auto"]


def test_missing_nodes_end_it_with_a_message() -> None:
    ended = run("train", CONFIG, RAY_ADDRESS="127.0.0.1:9", NUM_NODES="2", NODES_TIMEOUT_S="0")
    assert ended.returncode == 1
    assert "error: 0 of 2 Ray nodes came to 127.0.0.1:9 within NODES_TIMEOUT_S=0 s (none)" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [(["eval", CONFIG], {"RAY_ADDRESS": "127.0.0.1:9", "NUM_NODES": "2"}), (["train", CONFIG], {})],
)
def test_wrong_usage_is_answered_with_the_right_one(arguments: list[str], variables: dict[str, str]) -> None:
    ended = run(*arguments, **variables)
    assert ended.returncode == 1
    assert "NUM_NODES=2 python deploy/run.py train|sft CONFIG" in ended.stderr
