"""Digests are made while the run goes on; until then a checkpoint is whole by its files and their sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checkpoint_files import write_least

from vlrl.run.checkpoint import RunState, latest_checkpoint, save_checkpoint
from vlrl.run.completion import Completion, TaskFn
from vlrl.run.manifest import add_digests, damage
from vlrl.storage.stopping import StopFn, Stopped

Told = list[tuple[str, str]]


def save(run_dir: Path, step: int, **options: object) -> Path:
    keep: dict[str, object] = {"keep": 2, **options}
    return save_checkpoint(run_dir, RunState(step, 7, 2), write_least, **keep)  # type: ignore[arg-type]


def digests(folder: Path) -> list[str | None]:
    return [entry.get("sha256") for entry in json.loads((folder / "files.json").read_text()).values()]


class Gate:
    """A task that waits to be let through, and counts who came."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.done: list[str] = []

    def __call__(self, folder: Path, stopped: StopFn) -> None:
        self.entered.set()
        while not self.opened.wait(0.01):
            if stopped():
                raise Stopped
        self.done.append(folder.name)


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def completion(told: Told) -> Iterator[Callable[..., Completion]]:
    made: list[Completion] = []

    def make(*tasks: TaskFn) -> Completion:
        made.append(Completion(tasks, lambda event, text: told.append((event, text))))
        return made[-1]

    yield make
    for each in made:
        each.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name == "checkpoints"]


def test_digests_come_after_the_checkpoint_and_make_it_verified(
    tmp_path: Path, completion: Callable[..., Completion], told: Told
) -> None:
    gate = Gate()
    background = completion(gate, add_digests)
    folder = save(tmp_path, 1)
    background.begin(folder)
    gate.entered.wait()
    assert digests(folder) == [None] * 3  # and the caller goes on
    found, state = latest_checkpoint(tmp_path, lambda event, text: told.append((event, text)))
    assert (found, state.next_step) == (folder, 1)
    assert told == [
        (
            "checkpoint_not_verified",
            f"{folder}: all files are there with their sizes; the run ended before their digests were made",
        )
    ]
    gate.opened.set()
    background.finish()
    assert all(len(digest or "") == 64 for digest in digests(folder))
    told.clear()
    assert latest_checkpoint(tmp_path, lambda event, text: told.append((event, text)))[0] == folder
    assert told == []


@pytest.mark.parametrize("harm", ["missing", "truncated"])
def test_without_digests_a_missing_or_truncated_file_is_found(tmp_path: Path, harm: str) -> None:
    first = save(tmp_path, 1)
    file = save(tmp_path, 2) / "model" / "weights"
    if harm == "missing":
        file.unlink()
    else:
        os.truncate(file, 0)
    assert latest_checkpoint(tmp_path)[0] == first


def test_a_kill_while_digests_are_made_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    code = f"""
import os
from pathlib import Path
from checkpoint_files import write_least
from vlrl.run import manifest
from vlrl.run.checkpoint import RunState, save_checkpoint
folder = save_checkpoint(Path({str(tmp_path)!r}), RunState(2, 7, 2), write_least, keep=2)
manifest.os.replace = lambda source, target: os.kill(os.getpid(), 9)  # all but the last of it is done
manifest.add_digests(folder)
"""
    helpers = str(Path(__file__).parents[1] / "helpers")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([helpers, os.environ["PYTHONPATH"]])}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == -9
    folder, state = latest_checkpoint(tmp_path)
    assert (state.next_step, damage(folder), digests(folder)) == (2, "", [None] * 3)
    add_digests(folder)  # as the run does that goes on from it
    assert None not in digests(folder) and damage(folder) == ""


def test_one_that_is_read_is_pruned_later(tmp_path: Path, completion: Callable[..., Completion]) -> None:
    gate = Gate()
    background = completion(gate)
    background.begin(save(tmp_path, 1, keep=1))
    gate.entered.wait()
    for step in (2, 3):
        background.begin(save(tmp_path, step, keep=1, in_use=background.in_use))
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step_000001", "step_000003"]
    gate.opened.set()
    background.finish()
    assert gate.done == ["step_000001", "step_000002", "step_000003"]
    assert background.in_use == ()
    save(tmp_path, 4, keep=1, in_use=background.in_use)
    assert os.listdir(tmp_path / "checkpoints") == ["step_000004"]


def test_one_that_was_pruned_before_its_turn_is_passed_over(
    tmp_path: Path, completion: Callable[..., Completion], told: Told
) -> None:
    background = completion(add_digests)
    background.begin(tmp_path / "checkpoints" / "step_000009")
    folder = save(tmp_path, 1)
    background.begin(folder)
    background.finish()
    assert None not in digests(folder)
    assert told == []


def test_a_task_that_fails_is_reported_and_the_next_checkpoint_has_its_turn(
    tmp_path: Path, completion: Callable[..., Completion], told: Told
) -> None:
    failures = iter([OSError(5, "Input/output error")])

    def fails_once(folder: Path, stopped: StopFn) -> None:
        for failure in failures:
            raise failure

    background = completion(fails_once, add_digests)
    first, second = save(tmp_path, 1), save(tmp_path, 2)
    for folder in (first, second):
        background.begin(folder)
    background.finish()
    said = f"{first}: [Errno 5] Input/output error; the run goes on, and tries again with the next checkpoint"
    assert told == [("checkpoint_not_completed", said)]
    assert None in digests(first) and None not in digests(second)


def test_closing_gives_up_what_is_at_work_and_what_waits(
    tmp_path: Path, completion: Callable[..., Completion], told: Told
) -> None:
    gate = Gate()
    background = completion(gate, add_digests)
    for step in (1, 2):
        background.begin(save(tmp_path, step))
    gate.entered.wait()
    background.close()
    assert gate.done == told == []
    assert damage(tmp_path / "checkpoints" / "step_000002") == ""


def test_digests_of_a_step_that_was_saved_again_are_not_those_of_its_files(tmp_path: Path) -> None:
    """Files that were replaced while they were read: the new manifest stays."""
    folder = save(tmp_path, 1)

    def saved_again() -> bool:
        manifest = json.loads((folder / "files.json").read_text())
        (folder / "files.json").write_text(json.dumps(manifest | {"new": {"size": 0}}))
        return False

    with pytest.raises(Stopped):
        add_digests(folder, saved_again)
    assert digests(folder) == [None] * 4
