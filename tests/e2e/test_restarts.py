"""A trainer rank is killed: the run goes on from its last checkpoint, with the same numbers."""

from __future__ import annotations

import io
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from builders import make_config
from rich.console import Console
from warm_worker import FOLDER_VARIABLE

from vlrl import grpo, sft
from vlrl.config import Config
from vlrl.errors import EngineError, Interrupted
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.metrics import repeatable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

NUM_STEPS = 5

REWARD = '''
def parity(completion, answer):
    """Something that a random model gets right every other time."""
    return float(sum(map(ord, completion)) % 2)
'''


def ranks() -> list[int]:
    """Process ids of the living trainer ranks of this process's Ray: forks, so no descendants of it."""
    pids = [pid for pid in psutil.pids() if name_of(pid).startswith("ray::TrainerRank")]
    return [pid for pid in pids if variable_of(pid, FOLDER_VARIABLE) == os.environ[FOLDER_VARIABLE]]


def ranks_left(limit_s: float = 60.0) -> list[int]:
    """Those that have not gone after a while: Ray ends processes, and does not wait for them."""
    end = time.monotonic() + limit_s
    while (living := ranks()) and time.monotonic() < end:
        time.sleep(0.2)
    return living


def name_of(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:  # it has gone
        return ""


def variable_of(pid: int, name: str) -> str | None:
    try:
        return psutil.Process(pid).environ().get(name)
    except psutil.Error:
        return None


class Deadly(TrainConsole):
    """A console that kills a rank when it is told to show a step; and notes what it is told."""

    def __init__(self, config: Config, kill_after: list[int]) -> None:
        super().__init__("test", config.num_steps, console=Console(file=io.StringIO()))
        self.kill_after, self.shown = kill_after, list[int]()
        self.also: Callable[[], None] = lambda: None

    def step(self, step: int, values: Mapping[str, float]) -> None:
        """Show, and kill if it is time."""
        super().step(step, values)
        self.shown.append(step)
        if self.kill_after and step == self.kill_after[0]:
            self.kill_after.pop(0)
            self.also()
            living = ranks()
            assert len(living) == 2, "there is nobody to kill"
            os.kill(living[len(self.shown) % 2], signal.SIGKILL)


def run(config: Config, kill_after: list[int], train: Any = grpo.train, **options: Any) -> list[int]:
    """The steps as they were shown."""
    with Deadly(config, kill_after) as console:
        console.also = options.pop("also", console.also)
        train(config, console, **options)
    return console.shown


def metrics(config: Config) -> list[dict[str, Any]]:
    """Every step's numbers but those that a clock made."""
    return [repeatable(each) for each in lines(config, "metrics.jsonl")]


def lines(config: Config, name: str) -> list[dict[str, Any]]:
    path = config.run_dir / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def new_run(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("restarts")
    (folder / "reward.py").write_text(REWARD)

    def make(name: str, *, every: int, **sections: Any) -> Config:
        tree: dict[str, Any] = {
            "trainer": {"num_ranks": 2, "cpus_per_rank": 0.5},
            "sft": {"batch_size": 4},
            **sections,
        }
        return make_config(
            tiny_model,
            run={"name": name, "dir": str(folder), "seed": 11},
            data={"train": {"name": "digit_sum", "limit": 60}},
            rewards=[{"name": f"{folder}/reward.py:parity"}],
            rollout={"prompts_per_step": 2, "group_size": 2, "max_tokens": 6},
            num_steps=NUM_STEPS,
            optim={"lr": 3e-3},
            checkpoint={"every": every},
            logging={"tensorboard": False},
            **tree,
        )

    return make


def test_killed_ranks_cost_the_steps_since_the_checkpoint_and_change_nothing(
    new_run: Any, local_ray: None
) -> None:
    """Once before there is a checkpoint, once after."""
    whole, killed = new_run("whole", every=2), new_run("killed", every=2)
    assert run(whole, []) == list(range(NUM_STEPS))
    assert run(killed, [0, 2]) == [0, 0, 1, 2, 2, 3, 4]
    assert metrics(killed) == metrics(whole)
    assert lines(killed, "samples.jsonl") == lines(whole, "samples.jsonl")
    assert [s["positions"] for s in lines(whole, "samples.jsonl")] == [
        [2 * k, 2 * k + 1] for k in range(NUM_STEPS)
    ]
    # What the first calls of the rewards say is said at the start of both.
    # A rank may die before the digests of the checkpoint are made.
    others = ("reference_not_rewarded", "checkpoint_not_verified")
    events = [e for e in lines(killed, "events.jsonl") if e["event"] not in others]
    assert [e["event"] for e in events] == ["trainer_restarted"] * 2
    assert "restart 1 of 3, from the beginning, as there is no checkpoint yet" in events[0]["text"]
    assert "restart 2 of 3, from the last checkpoint" in events[1]["text"]
    assert {e["event"] for e in lines(whole, "events.jsonl")} <= {"reference_not_rewarded"}
    assert ranks_left() == []


def test_supervised_training_too(new_run: Any, local_ray: None) -> None:
    whole, killed = new_run("sft_whole", every=2), new_run("sft_killed", every=2)
    run(whole, [], sft.train)
    assert run(killed, [3], sft.train) == [0, 1, 2, 3, 2, 3, 4]  # it is missed when step 3 is to be saved
    assert metrics(killed) == metrics(whole)


def test_too_many_deaths_end_the_run_and_say_so(new_run: Any, local_ray: None) -> None:
    config = new_run("often", every=1, trainer={"num_ranks": 2, "cpus_per_rank": 0.5, "max_restarts": 1})
    with pytest.raises(
        EngineError, match=r"restarted trainer.max_restarts=1 times, and has died again: .* rank \d of 2"
    ):
        run(config, [1, 2], sft.train)
    assert ranks_left() == []
    assert run(config, [], sft.train, resume=True)[-1] == NUM_STEPS - 1


def test_a_signal_while_a_dead_trainer_is_cleared_away_stops_the_run(new_run: Any, local_ray: None) -> None:
    config = new_run("stopped", every=1)
    with pytest.raises(Interrupted, match="continue with --resume"):
        run(config, [1], sft.train, also=lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert ranks_left() == []
