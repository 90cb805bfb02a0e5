"""A run whose model and checkpoints are in a bucket moves to another machine, and survives the bucket."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from object_store import Bucket
from sessions import Session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

LIMIT_S = 400.0
NUM_STEPS = 6


@pytest.fixture
def start(tmp_path: Path, bucket: Bucket) -> Iterator[Callable[..., Session]]:
    """Run `vlrl sft` in a folder of its own, which is a machine's."""
    sessions: list[Session] = []

    def run(machine: str, *overrides: str) -> Session:
        folder = tmp_path / machine
        folder.mkdir(exist_ok=True)
        environment = {**bucket.environment, "XDG_CACHE_HOME": str(folder / "cache")}
        file = str(tmp_path / "run.yaml")
        sessions.append(Session(folder, "sft", file, *overrides, env=environment))
        return sessions[-1]

    yield run
    for session in sessions:
        session.kill()


@pytest.fixture(autouse=True)
def file(tmp_path: Path, bucket: Bucket, tiny_model: Path) -> Path:
    for each in tiny_model.rglob("*"):
        if each.is_file():
            bucket.put(f"model/{each.relative_to(tiny_model)}", each.read_bytes())
    tree = {
        "run": {"name": "a"},
        "model": {"path": f"{bucket.url}/model"},
        "data": {"train": {"name": "digit_sum", "options": {"num_rows": 64}}},
        "num_steps": NUM_STEPS,
        "rollout": {"max_tokens": 8},
        "generator": {"max_model_len": 128},
        "optim": {"lr": 1e-3},
        "sft": {"batch_size": 2},
        "checkpoint": {"every": 2, "keep": 1, "upload_to": f"{bucket.url}/runs"},
        "logging": {"tensorboard": False},
    }
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


def lines(machine: Path, name: str) -> list[dict[str, Any]]:
    """A last line that is still being written is left out."""
    path = machine / "runs" / "a" / name
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def losses(machine: Path) -> list[float]:
    return [line["sft/loss"] for line in lines(machine, "metrics.jsonl")]


def test_a_run_goes_on_where_it_was_stopped_on_a_machine_that_has_nothing_of_it(
    start: Callable[..., Session], bucket: Bucket, tmp_path: Path
) -> None:
    whole = start("whole", "checkpoint.upload_to=null")
    assert whole.end(LIMIT_S) == 0, whole.text()
    first = start("first", "num_steps=4")
    assert first.end(LIMIT_S) == 0, first.text()
    keys = [key for key in bucket.names() if key.startswith("runs/a/step_000004/")]
    assert {"config.yaml", "files.json", "run.json"} <= {key.rpartition("/")[2] for key in keys}
    assert not [key for key in bucket.names() if key.startswith("runs/a/step_000002/")]
    shutil.rmtree(tmp_path / "first")
    second = start("second", "--resume")
    assert second.end(LIMIT_S) == 0, second.text()
    assert losses(tmp_path / "second") == losses(tmp_path / "whole")[4:]
    assert lines(tmp_path / "second", "events.jsonl")[0]["event"] == "checkpoint_fetched"
    assert len(list((tmp_path / "second" / "cache" / "vlrl" / "models").glob("*/config.json"))) == 1


def test_a_bucket_that_goes_away_ends_a_finished_run_with_an_error_and_resume_uploads(
    start: Callable[..., Session], bucket: Bucket, tmp_path: Path
) -> None:
    run = start("one")
    run.wait_until(lambda: len(losses(tmp_path / "one")) > 2, LIMIT_S)
    bucket.destroy()
    assert run.end(LIMIT_S) == 1
    said = run.text()
    assert "step_000006 was not uploaded to" in said
    assert "the same command with --resume uploads it" in said
    assert len(losses(tmp_path / "one")) == NUM_STEPS
    assert (tmp_path / "one" / "runs" / "a" / "summary.json").is_file()
    events = lines(tmp_path / "one", "events.jsonl")
    failed = [event["text"] for event in events if event["event"] == "checkpoint_not_completed"]
    assert failed and all("there is no such bucket or folder" in text for text in failed)
    bucket.client.create_bucket(Bucket=bucket.name)
    again = start("one", "--resume")
    assert again.end(LIMIT_S) == 0, again.text()
    assert "runs/a/step_000006/files.json" in bucket.names()
