"""How a run's end is told: the command that continues it, and where its traceback lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from builders import make_config
from checkpoint_files import write_least
from umask import umask

from vlrl.cli.failures import explained, resumable_run, resume_command
from vlrl.config import Config
from vlrl.errors import DataError, EngineError, Interrupted
from vlrl.run.checkpoint import RunState, save_checkpoint


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(sys, "argv", ["vlrl", "train", "my run.yaml", "optim.lr=1e-4", "--json"])
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "a").mkdir()
    return make_config(run={"name": "a", "dir": str(tmp_path)})


def test_the_command_that_goes_on_is_one_that_a_shell_reads() -> None:
    assert resume_command(["train", "my run.yaml", "--resume", "rewards=[x]"]) == (
        "vlrl train 'my run.yaml' 'rewards=[x]' --resume"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            Interrupted("stopped after step 3 of 9, saved; continue with --resume"),
            "stopped after step 3 of 9, saved",
        ),
        (KeyboardInterrupt(), "interrupted; what was not checkpointed is lost"),
    ],
)
def test_a_stopped_run_ends_with_it(config: Config, error: BaseException, said: str) -> None:
    with pytest.raises(Interrupted) as ended, resumable_run(config):
        raise error
    assert str(ended.value) == f"{said}; there is no checkpoint yet, so run it again"
    save_checkpoint(config.run_dir, RunState(5, 0, 1), write_least, keep=1)
    with pytest.raises(Interrupted) as ended, resumable_run(config):
        raise error
    command = "vlrl train 'my run.yaml' optim.lr=1e-4 --json --resume"
    assert str(ended.value) == f"{said}; continue with: {command}"


@pytest.mark.parametrize("error", [EngineError("lost"), ZeroDivisionError("by zero")])
def test_a_runs_traceback_is_kept_in_its_folder(config: Config, error: Exception) -> None:
    for number in (1, 2):
        with pytest.raises(type(error)) as raised, resumable_run(config):
            raise error
        kept = config.run_dir / ("error.txt" if number == 1 else "error-2.txt")
        assert str(kept) in str(explained(raised.value))
        assert "Traceback (most recent call last)" in kept.read_text()
        assert kept.stat().st_mode & 0o777 == 0o666 & ~umask()
    assert list((config.run.dir / "temporary").iterdir()) == []


def test_without_a_folder_it_goes_where_temporary_files_go(config: Config) -> None:
    error = ZeroDivisionError("by zero")
    assert str(config.run.dir / "temporary" / "vlrl-error-") in str(explained(error))


def test_an_error_with_a_remedy_needs_none(config: Config) -> None:
    error = DataError("no row")
    with pytest.raises(DataError), resumable_run(config):
        raise error
    assert explained(error) is error and list(config.run_dir.iterdir()) == []


def test_what_failed_side_by_side_is_told_as_one(config: Config) -> None:
    """A task group wraps what its tasks raise; the group itself says nothing."""
    inner = EngineError("the engine is lost")
    with pytest.raises(ExceptionGroup) as raised, resumable_run(config):
        raise ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("inside", [inner]), inner])
    told = explained(raised.value)
    assert isinstance(told, EngineError)
    assert str(told) == f"the engine is lost; traceback: {config.run_dir / 'error.txt'}"
