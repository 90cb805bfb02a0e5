"""A checkpoint is whole or absent, whatever happens while it is written; believed only if unchanged."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_files import write_least

from vlrl.config.options import CheckpointConfig
from vlrl.errors import CheckpointError, ConfigError, ResourceError
from vlrl.run.checkpoint import (
    RunState,
    SaveInterval,
    WriteFn,
    latest_checkpoint,
    save_checkpoint,
    written_atomically,
)
from vlrl.run.manifest import add_digests

STATE = RunState(next_step=3, seed=7, num_ranks=2)


def save(run_dir: Path, step: int, write: WriteFn = write_least, keep: int = 2) -> Path:
    """One with its digests."""
    folder = save_checkpoint(run_dir, RunState(step, 7, 2), write, keep=keep)
    add_digests(folder)
    return folder


def everything(folder: Path) -> list[str]:
    """Every path below, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_last_one_is_found_with_its_state(tmp_path: Path) -> None:
    for step in (1, 3, 20):
        save(tmp_path, step, keep=9)
    folder, state = latest_checkpoint(tmp_path)
    assert folder == tmp_path / "checkpoints" / "step_000020"
    assert state == RunState(20, 7, 2)
    assert (folder / "model" / "weights").read_text() == "w"


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    for step in range(1, 6):
        save(tmp_path, step, keep=2)
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step_000004", "step_000005"]


def test_none_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no checkpoint under .*; run without --resume"):
        latest_checkpoint(tmp_path)


def fail(error: BaseException) -> WriteFn:
    def write(folder: Path) -> dict[str, int]:
        write_least(folder)
        raise error

    return write


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_the_earlier_ones_whole(tmp_path: Path, number: int) -> None:
    save(tmp_path, 1)
    before = everything(tmp_path)
    with pytest.raises(
        ResourceError, match=r"disk is full: .*step_000002 .*; the checkpoints before it are whole"
    ):
        save(tmp_path, 2, fail(OSError(number, os.strerror(number))))
    assert everything(tmp_path) == before
    assert latest_checkpoint(tmp_path)[1].next_step == 1


@pytest.mark.parametrize(
    "error",
    [RuntimeError("broken"), KeyboardInterrupt(), PermissionError(errno.EACCES, "no"), ResourceError("full")],
)
def test_any_failure_leaves_the_earlier_ones_whole(tmp_path: Path, error: BaseException) -> None:
    save(tmp_path, 1)
    before = everything(tmp_path)
    with pytest.raises(type(error)):
        save(tmp_path, 2, fail(error))
    assert everything(tmp_path) == before


def test_a_step_saved_again_is_replaced_whole(tmp_path: Path) -> None:
    save(tmp_path, 1)

    def other(folder: Path) -> dict[str, int]:
        for name in ("model/new", "state/new"):
            (folder / name).parent.mkdir()
            (folder / name).write_text("n")
        return {}

    save(tmp_path, 1, other)
    files = [path for path in everything(tmp_path / "checkpoints") if not path.endswith(("/model", "/state"))]
    assert files == [
        *("step_000001", "step_000001/files.json", "step_000001/model/new", "step_000001/run.json"),
        "step_000001/state/new",
    ]


@pytest.mark.parametrize("part", ["model", "state"])
def test_one_without_a_model_or_without_states_is_never_written(tmp_path: Path, part: str) -> None:
    save(tmp_path, 1)
    before = everything(tmp_path)

    def only(folder: Path) -> dict[str, int]:
        (folder / part).mkdir()
        (folder / part / "weights").write_text("w")
        return {}

    lacking = {"model": "state/", "state": "model/"}[part]
    with pytest.raises(
        CheckpointError, match=rf"would be no checkpoint: files.json names no file of {lacking}"
    ):
        save(tmp_path, 2, only)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("part", ["model", "state"])
def test_one_whose_manifest_names_no_model_or_no_states_is_not_whole(tmp_path: Path, part: str) -> None:
    save(tmp_path, 1)
    manifest = save(tmp_path, 2) / "files.json"
    named = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({name: n for name, n in named.items() if not name.startswith(part)}))
    told = Told()
    assert latest_checkpoint(tmp_path, told)[1].next_step == 1
    assert f"step_000002: files.json names no file of {part}/; going back to step_000001" in told[0][1]


def test_what_other_processes_wrote_is_in_the_manifest_with_its_size(tmp_path: Path) -> None:
    """Also where this host's list of names in a shared folder is late: such files are looked at by name."""

    def write(folder: Path) -> dict[str, int]:
        write_all_kinds(folder)
        return {"state/zero/rank_0.pt": (folder / "state/zero/rank_0.pt").stat().st_size}

    named = json.loads((save(tmp_path, 1, write) / "files.json").read_text())
    assert set(named) == set(KINDS)


def test_a_kill_while_writing_leaves_nothing_that_looks_like_one(tmp_path: Path) -> None:
    save(tmp_path, 1)
    code = f"""
import os
from pathlib import Path
from vlrl.run.checkpoint import RunState, save_checkpoint
def write(folder):
    (folder / "model").mkdir()
    os.kill(os.getpid(), 9)
save_checkpoint(Path({str(tmp_path)!r}), RunState(2, 7, 2), write, keep=2)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    assert latest_checkpoint(tmp_path)[1].next_step == 1
    assert (tmp_path / "checkpoints" / ".step_000002.partial").exists()
    save(tmp_path, 3)  # by time, the next one is another step's
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step_000001", "step_000003"]


def test_a_kill_while_pruning_leaves_nothing_that_looks_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1, keep=1)

    def killed(path: Path, ignore_errors: bool = False) -> None:
        if path.name == "step_000001":
            raise KeyboardInterrupt

    monkeypatch.setattr("vlrl.run.checkpoint.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, 2, keep=1)
    monkeypatch.undo()
    assert not (tmp_path / "checkpoints" / "step_000001" / "run.json").exists()
    assert latest_checkpoint(tmp_path)[1].next_step == 2


def write_all_kinds(folder: Path) -> dict[str, int]:
    """One file of each kind that a run's checkpoint has."""
    for name in ("model/model.safetensors", "state/zero/rank_0.pt", "state/latest", "generated.pickle"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode() * 100)
    return {}


KINDS = ("model/model.safetensors", "state/zero/rank_0.pt", "state/latest", "generated.pickle", "run.json")


def flip_a_byte(path: Path) -> str:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return "is not what was written: its SHA-256 is another"


def truncate(path: Path) -> str:
    size = path.stat().st_size
    os.truncate(path, size - 1)
    return f"has {size - 1} bytes, {size} were written"


def remove(path: Path) -> str:
    path.unlink()
    return "is missing"


class Told(list[tuple[str, str]]):
    """What a run would say and keep in its events."""

    def __call__(self, event: str, text: str) -> None:
        self.append((event, text))


@pytest.mark.parametrize("harm", [flip_a_byte, truncate, remove])
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_last_one_gives_way_to_the_one_before(
    tmp_path: Path, name: str, harm: Callable[[Path], str]
) -> None:
    save(tmp_path, 1, write_all_kinds)
    last, told = save(tmp_path, 2, write_all_kinds), Told()
    assert latest_checkpoint(tmp_path, told) == (last, RunState(2, 7, 2))
    assert told == []
    wrong = harm(last / name)
    folder, state = latest_checkpoint(tmp_path, told)
    assert (folder.name, state.next_step) == ("step_000001", 1)
    where = f"{tmp_path}/checkpoints/step_000002: {name} {wrong}"
    assert told == [("checkpoint_damaged", f"damaged checkpoint {where}; going back to step_000001")]


@pytest.mark.parametrize("harm", [flip_a_byte, truncate, remove])
def test_digests_that_are_damaged_themselves_are_believed_as_little(
    tmp_path: Path, harm: Callable[[Path], str]
) -> None:
    save(tmp_path, 1, write_all_kinds)
    last, told = save(tmp_path, 2, write_all_kinds), Told()
    harm(last / "files.json")
    assert latest_checkpoint(tmp_path, told)[1].next_step == 1
    assert [event for event, _ in told] == ["checkpoint_damaged"]


def test_all_damaged_is_an_error_that_names_them(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step, write_all_kinds)
    flip_a_byte(tmp_path / "checkpoints" / "step_000001" / "generated.pickle")
    remove(tmp_path / "checkpoints" / "step_000002" / "run.json")
    with pytest.raises(
        CheckpointError,
        match=r"step_000002: run.json is missing; step_000001: generated.pickle is not .* a copy, or remove",
    ):
        latest_checkpoint(tmp_path)


def test_an_old_one_without_digests_is_taken_and_called_not_verified(tmp_path: Path) -> None:
    old, told = save(tmp_path, 2, write_all_kinds), Told()
    (old / "files.json").unlink()
    (old / "run.json").write_text(json.dumps({"next_step": 2, "seed": 7, "num_ranks": 2}))
    assert latest_checkpoint(tmp_path, told) == (old, RunState(2, 7, 2))
    assert told == [("checkpoint_not_verified", f"{old} has no digests of its files, so it is not verified")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"next_step": 2, "other": 1}', "\0"])
def test_an_old_one_whose_state_cannot_be_read_is_passed_over(tmp_path: Path, text: str) -> None:
    save(tmp_path, 1)
    old = save(tmp_path, 2)
    (old / "files.json").unlink()
    (old / "run.json").write_text(text)
    assert latest_checkpoint(tmp_path)[1].next_step == 1


def test_a_damaged_one_goes_when_the_run_has_gone_on_from_before_it(tmp_path: Path) -> None:
    """Otherwise it would count as the last one, and the one just saved would be pruned in its place."""
    save(tmp_path, 20, keep=2)
    remove(save(tmp_path, 30, keep=2) / "run.json")
    save(tmp_path, 25, keep=1)
    assert os.listdir(tmp_path / "checkpoints") == ["step_000025"]


def test_everything_is_on_the_disk_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        done.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    save_checkpoint(tmp_path, STATE, write_all_kinds, keep=2)
    before, after = done[: done.index("rename")], done[done.index("rename") + 1 :]
    folder = tmp_path / "checkpoints" / "step_000003"
    assert sorted(before) == sorted([".step_000003.partial", *map(os.path.basename, everything(folder))])
    assert after == ["checkpoints"]
    done.clear()
    add_digests(folder)
    assert done == [".files.json.part", "rename", "step_000003"]


def test_a_single_folder_is_whole_or_absent_too(tmp_path: Path) -> None:
    final = tmp_path / "model"
    with pytest.raises(RuntimeError), written_atomically(final) as aside:
        write_least(aside)
        raise RuntimeError
    assert everything(tmp_path) == []
    with written_atomically(final) as aside:
        write_least(aside)
        assert not final.exists()
    assert everything(final) == ["model", "model/weights", "state", "state/weights"]


def test_a_full_disk_is_told_from_what_the_writers_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch and safetensors each fail in their own words on a device without room."""
    import torch

    from vlrl import cluster
    from vlrl.errors import EngineError
    from vlrl.trainer.driver import Trainer

    tensors = {"a": torch.zeros(3_000_000)}
    full = tmp_path / "full"
    full.symlink_to("/dev/full")

    def raised_by(write: Callable[[], None]) -> EngineError:
        with pytest.raises(Exception) as caught:
            write()
        return EngineError(str(caught.value))

    trainer = object.__new__(Trainer)
    trainer._ranks = []

    def save_after(error: EngineError) -> None:
        def broken(*_: object) -> None:
            raise error

        monkeypatch.setattr(cluster, "call", broken)
        trainer._save("save_model", tmp_path / "model")

    for error in (
        raised_by(lambda: torch.save(tensors, full)),
        raised_by(lambda: full.write_bytes(b"x")),
        EngineError("SafetensorError: I/O error: No space left on device (os error 28)"),
    ):
        with pytest.raises(ResourceError, match=r"disk is full: .*/model could not be written; free some"):
            save_after(error)
    with pytest.raises(EngineError, match="something else"):
        save_after(EngineError("RuntimeError: something else"))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def saves(num_steps: int, *, step_s: float, save_s: float = 0.0, **options: float | None) -> list[int]:
    """The steps after which one is written, if each step and each save takes so long."""
    clock = Clock()
    interval, found = SaveInterval(CheckpointConfig(**options), clock=clock), []
    for step in range(num_steps):
        clock.now += step_s
        if interval.is_due(step):
            found.append(step)
            clock.now += save_s
            interval.saved()
    return found


def test_by_step_alone_time_does_not_matter() -> None:
    assert saves(10, step_s=3600, every=4) == [3, 7]


def test_by_time_alone_it_is_the_first_step_that_ends_past_it() -> None:
    assert saves(10, step_s=25, every=0, every_minutes=1) == [2, 5, 8]


def test_time_is_counted_from_the_end_of_the_last_save() -> None:
    assert saves(10, step_s=25, save_s=1000, every=0, every_minutes=1) == [2, 5, 8]


def test_whichever_comes_first() -> None:
    assert saves(12, step_s=20, every=5, every_minutes=1) == [2, 4, 7, 9]  # 4 and 9 by step, then time again


def test_neither() -> None:
    assert saves(100, step_s=3600, every=0) == []


@pytest.mark.parametrize("minutes", [0, -1, float("nan")])
def test_no_time_is_no_interval(minutes: float) -> None:
    with pytest.raises(ValueError, match="every_minutes"):
        CheckpointConfig(every_minutes=minutes)
