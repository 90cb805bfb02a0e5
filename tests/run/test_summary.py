"""summary.json: when a run is finished, and what its steps add up to."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from rich.console import Console

from vlrl.config import Config
from vlrl.config.options import LoggingConfig
from vlrl.run.recovery import with_restarts
from vlrl.run.summary import counted, finished
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.sinks import MetricSinks


def make_run(folder: Path, num_steps: int) -> Config:
    return make_config(run={"name": "a", "dir": str(folder)}, num_steps=num_steps)


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A folder of runs, in which "a" has done 10 steps."""
    (tmp_path / "a" / "model").mkdir(parents=True)
    (tmp_path / "a" / "summary.json").write_text(json.dumps({"num_steps": 10}))
    return tmp_path


@pytest.mark.parametrize(("num_steps", "is_done"), [(10, True), (5, True), (11, False)])
def test_a_run_is_finished_that_has_done_as_many_steps(done: Path, num_steps: int, is_done: bool) -> None:
    assert (finished(make_run(done, num_steps)) is not None) == is_done


def test_without_its_model_or_its_summary_it_is_not(done: Path, tmp_path: Path) -> None:
    (done / "a" / "model").rmdir()
    assert finished(make_run(done, 10)) is None
    (done / "a" / "model").mkdir()
    (done / "a" / "summary.json").write_text("{")
    assert finished(make_run(done, 10)) is None


def test_resuming_a_finished_run_starts_nothing_and_says_so(done: Path) -> None:
    def attempt(resume: bool) -> dict[str, Any]:
        raise AssertionError("something was started")

    out, config = io.StringIO(), make_run(done, 10)
    with TrainConsole("a", 10, console=Console(file=out)) as console:
        assert with_restarts(attempt, config, console, True) == {"num_steps": 10}
        with pytest.raises(AssertionError):
            with_restarts(attempt, make_run(done, 20), console, True)
    assert "is finished: 10 steps are done" in out.getvalue()


def test_dropped_rows_and_silent_steps_are_added_up(tmp_path: Path) -> None:
    config = make_run(tmp_path, 2)
    with MetricSinks(config.run_dir, LoggingConfig(tensorboard=False)) as sinks:
        sinks.log(0, {"data/num_dropped_broken": 2.0, "reward/zero_variance_groups": 1.0})
        sinks.log(1, {"data/num_dropped_broken": 1.0, "data/num_dropped_overlong": 4.0})
    assert counted(config) == {
        "num_dropped_broken": 3,
        "num_dropped_overlong": 4,
        "num_steps_without_signal": 1,
    }
