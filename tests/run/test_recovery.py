"""How often, and from where, a run is taken up again whose trainer died. Real deaths: e2e/test_restarts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import make_config
from checkpoint_files import write_least
from rich.console import Console

from vlrl.config import Config
from vlrl.errors import DataError, EngineError, TrainerDied, VlrlError
from vlrl.run.checkpoint import RunState, save_checkpoint
from vlrl.run.recovery import with_restarts
from vlrl.tracking.console import TrainConsole


class Attempts:
    """A run that dies so often, the first time before it has a checkpoint."""

    def __init__(self, config: Config, num_deaths: int, error: type[VlrlError] = TrainerDied) -> None:
        self.config, self.num_deaths, self.error = config, num_deaths, error
        self.resumed: list[bool] = []

    def __call__(self, resume: bool) -> str:
        self.resumed.append(resume)
        if len(self.resumed) == 2:
            save_checkpoint(self.config.run_dir, RunState(5, 0, 1), write_least, keep=1)
        if len(self.resumed) <= self.num_deaths:
            raise self.error(f"rank 1 has died, death {len(self.resumed)}")
        return "done"


Play = Callable[[Attempts, bool], str]


@pytest.fixture
def play() -> Play:
    def run(attempts: Attempts, resume: bool) -> str:
        with TrainConsole("run", 1, console=Console(file=io.StringIO())) as console:
            return with_restarts(attempts, attempts.config, console, resume)

    return run


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return make_config(run={"name": "a", "dir": str(tmp_path)}, trainer={"max_restarts": 2})


def events(config: Config) -> list[str]:
    path = config.run_dir / "events.jsonl"
    return [json.loads(line)["text"] for line in path.read_text().splitlines()] if path.exists() else []


def test_nothing_happens_to_a_run_that_does_not_die(config: Config, play: Play) -> None:
    attempts = Attempts(config, 0)
    assert (play(attempts, False), attempts.resumed, events(config)) == ("done", [False], [])


def test_it_begins_again_without_a_checkpoint_and_resumes_with_one(config: Config, play: Play) -> None:
    attempts = Attempts(config, 2)
    assert play(attempts, False) == "done"
    assert attempts.resumed == [False, False, True]
    assert events(config) == [
        "rank 1 has died, death 1; restart 1 of 2, from the beginning, as there is no checkpoint yet",
        "rank 1 has died, death 2; restart 2 of 2, from the last checkpoint",
    ]


def test_one_death_too_many_is_an_error_with_a_remedy(config: Config, play: Play) -> None:
    attempts = Attempts(config, 3)
    with pytest.raises(
        EngineError, match=r"trainer.max_restarts=2 times, and has died again: .* death 3; .* then --resume"
    ):
        play(attempts, True)
    assert attempts.resumed == [True, False, True]


def test_other_errors_end_it(config: Config, play: Play) -> None:
    attempts = Attempts(config, 1, DataError)
    with pytest.raises(DataError):
        play(attempts, False)
    assert attempts.resumed == [False]


def test_one_cause_is_told_once(config: Config, play: Play) -> None:
    class Alike(Attempts):
        def __call__(self, resume: bool) -> str:
            self.resumed.append(resume)
            raise TrainerDied("rank 0 has died of too little memory")

    with pytest.raises(EngineError, match="has died again: it died in the same way; fix"):
        play(Alike(config, 9), False)
    assert [text.split(";")[0] for text in events(config)] == [
        "rank 0 has died of too little memory",
        "it died in the same way",
    ]
