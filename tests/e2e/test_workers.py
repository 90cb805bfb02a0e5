"""Runs of GRPO whose episodes are played by rollout workers, with the real engines."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from rich.console import Console
from whole_runs import rollouts

from vlrl import grpo
from vlrl.config import Config
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.metrics import repeatable

NUM_STEPS = 2

PLUG_INS = '''
import os
import signal
import zlib
from dataclasses import replace
from pathlib import Path

import psutil

from vlrl.envs.visual.games.frozen_lake import FrozenLake

HERE = Path(__file__).parent
NUM_RESETS = 0


def once(name):
    """Whether a worker finds the file, which is not there after that; in it is the driver's process."""
    if NUM_RESETS <= 8:  # of this worker: it is in its second step
        return False
    try:
        if int((HERE / name).read_text()) == os.getpid():
            return False
        (HERE / name).unlink()
    except FileNotFoundError:
        return False
    return True


class Lake(FrozenLake):
    """Some tasks end sooner, and some cannot be played."""

    def reset(self, task, seed):
        global NUM_RESETS
        NUM_RESETS += 1
        self.kind = task["kind"]
        return super().reset({}, seed)

    def step(self, action):
        with open(HERE / "players", "a") as file:
            file.write(f"{os.getpid()}\\n")
        if once("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if once("kill_engine"):
            for process in psutil.process_iter():
                if "GeneratorActor" in process.name() or "GeneratorActor" in " ".join(process.cmdline()):
                    process.kill()
        if self.kind == "broken":
            raise RuntimeError("thin ice")
        result = super().step(action)
        return replace(result, terminated=True) if self.kind == "short" else result


def checksum(completion, answer):
    """No two texts that a random model writes earn the same: every group has a spread, on any machine."""
    return zlib.crc32(completion.encode()) / 2**32
'''


def rows_of(folder: Path) -> dict[str, Any]:
    return {
        "env": f"{folder}/lake.py:Lake",
        "options": {"image_size": 112},
        "tasks": [{"kind": "long"}, {"kind": "short"}, {"kind": "broken"}],
    }


def config_of(
    model: Path, folder: Path, name: str, *, heldout: Sequence[Any] = (), **sections: Any
) -> Config:
    (folder / "lake.py").write_text(PLUG_INS)
    rollout = {"prompts_per_step": 6, "group_size": 2, "max_tokens": 6, "cpus_per_worker": 0.001}
    return make_config(
        model,
        run={"name": name, "dir": str(folder), "seed": 5},
        processor={"min_pixels": 28 * 28, "max_pixels": 56 * 56},
        data={"train": {"name": "env", "options": {**rows_of(folder), "num_rows": 64}}, "eval": heldout},
        rewards=[{"name": f"{folder}/lake.py:checksum"}, {"name": "episode_return"}],
        num_steps=NUM_STEPS,
        rollout=rollout | sections.pop("rollout"),
        episodes={"max_turns": 3, "max_failed_share": 1.0, **sections.pop("episodes", {})},
        generator={"max_model_len": 1024, "max_num_batched_tokens": 1024, **sections.pop("generator", {})},
        trainer={"max_tokens_per_micro_batch": 1024},
        optim={"lr": 1.0e-3},
        scoring={"num_workers": 1},
        parity={"num_samples": 2},
        checkpoint={"every": 0},
        **sections,
    )


def run(config: Config) -> tuple[list[dict[str, Any]], str]:
    """Every step's numbers, but those that a clock made, and which samples it trained."""
    steps, samples, _ = watched(config)
    return steps, samples


def watched(config: Config) -> tuple[list[dict[str, Any]], str, list[str]]:
    """The same, and what was said of parity."""
    said = io.StringIO()
    with TrainConsole("workers", NUM_STEPS, console=Console(file=said, width=200)) as console:
        grpo.train(config, console)
    lines = (config.run_dir / "metrics.jsonl").read_text().splitlines()
    steps = [repeatable(json.loads(line)) for line in lines]
    assert len(steps) == NUM_STEPS
    for step in steps:
        assert step["optim/grad_norm"] > 0
        assert step.get("parity/max_abs_logprob_diff", 0.0) < 1e-3  # none where every token is stale
    parity = [line for line in said.getvalue().splitlines() if "agree to" in line]
    return steps, (config.run_dir / "samples.jsonl").read_text(), parity


def num_replaced(steps: list[dict[str, Any]]) -> float:
    """Workers that were replaced; the number is taken out of the steps."""
    return sum(step.pop("failures/replaced_workers") for step in steps)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("num_replicas", "numbers"), [(1, [0, 3]), (2, [0, 1, 3])])
def test_the_same_numbers_however_many_workers_play(
    tiny_model: Path, tmp_path: Path, local_ray: None, num_replicas: int, numbers: list[int]
) -> None:
    """Law 8: episodes of one to three turns, some of which fail; batches are made by all workers.

    So it is for the held-out ones, before, during and after training, and for those of parity.
    """
    heldout = {"name": "env", "options": {**rows_of(tmp_path), "num_rows": 5, "split": "heldout"}}
    found = {}
    for num_workers in numbers:
        config = config_of(
            tiny_model,
            tmp_path,
            f"w{num_workers}",
            rollout={"num_workers": num_workers},
            generator={"num_replicas": num_replicas, "cpus": 0.5},
            heldout=[heldout],
            eval={"every": 1},
            weights={"probe_every": 1},
        )
        (tmp_path / "players").unlink(missing_ok=True)
        steps, samples, parity = watched(config)
        assert len(parity) == 1 + NUM_STEPS
        players = {int(line) for line in (tmp_path / "players").read_text().split()}
        assert (os.getpid() in players) == (num_workers == 0)
        assert "heldout/accuracy_sampled" in steps[0]
        summary = json.loads((config.run_dir / "summary.json").read_text())
        accuracies = {k: v for k, v in summary.items() if k.startswith("heldout_accuracy_")}
        assert len(accuracies) == 6
        found[num_workers] = steps, samples, parity, accuracies, rollouts(config.run_dir)
        images = {m["path"] for record in found[num_workers][-1] for m in record["media"]}
        assert all((config.run_dir / image).is_file() for image in images)
        if num_workers:
            assert num_replaced(found[num_workers][0]) == 0
    assert all(of_workers == found[0] for of_workers in found.values())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_dies_is_replaced_and_its_episodes_are_played_again(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    """It dies in the middle of an episode of the second step."""
    steps, samples = run(config_of(tiny_model, tmp_path, "alone", rollout={"num_workers": 0}))
    (tmp_path / "kill").write_text(str(os.getpid()))
    again, samples_again = run(config_of(tiny_model, tmp_path, "killed", rollout={"num_workers": 2}))
    assert not (tmp_path / "kill").exists()
    assert num_replaced(again) == 1
    assert samples_again == samples
    for step, step_again in zip(steps, again, strict=True):  # in batches of its own: other last bits
        assert step_again == pytest.approx(step, rel=1e-3, abs=1e-5)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_workers_of_a_stream_go_on_with_the_engine_in_the_place_of_a_dead_one(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    (tmp_path / "kill_engine").write_text(str(os.getpid()))
    config = config_of(
        tiny_model,
        tmp_path,
        "stream",
        rollout={"num_workers": 2},
        asynchronous={"mode": "async", "max_staleness": 1},
        episodes={"lockstep": False},
    )
    steps, _ = run(config)
    assert not (tmp_path / "kill_engine").exists()
    assert num_replaced(steps) == 0
    assert sum(step["failures/replaced_engines"] for step in steps) == 1
    assert sum(step["failures/resubmitted_requests"] for step in steps) >= 0
