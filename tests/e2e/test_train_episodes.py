"""A run of GRPO on episodes with the real engines: forks, failures, and the same numbers again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from rich.console import Console

from vlrl import grpo
from vlrl.config import Config
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.metrics import repeatable

NUM_STEPS = 2

PLUG_INS = '''
import time
from vlrl.envs.visual.games.frozen_lake import FrozenLake


class Lake(FrozenLake):
    """Now slower, now quicker; some tasks cannot be played."""

    def reset(self, task, seed):
        self.broken = task["broken"]
        return super().reset({}, seed)

    def step(self, action):
        time.sleep(0.001 * (len(action) % 5))
        if self.broken:
            raise RuntimeError("thin ice")
        return super().step(action)


def vowels(completion, answer):
    """Something a random model gets more or less of."""
    return sum(c in "aeiou0123456789" for c in completion) / 10
'''


def config_of(model: Path, folder: Path, name: str, isolation: str) -> Config:
    return make_config(
        model,
        run={"name": name, "dir": str(folder), "seed": 5},
        processor={"min_pixels": 28 * 28, "max_pixels": 56 * 56},
        data={
            "train": {
                "name": "env",
                "options": {
                    "env": f"{folder}/lake.py:Lake",
                    "options": {"image_size": 112},
                    "num_rows": 64,
                    "tasks": [{"broken": False}, {"broken": True}],
                },
            }
        },
        rewards=[{"name": f"{folder}/lake.py:vowels"}, {"name": "episode_return"}],
        num_steps=NUM_STEPS,
        rollout={"prompts_per_step": 4, "group_size": 3, "max_tokens": 6},
        episodes={
            "max_turns": 3,
            "context": {"policy": "last_images", "num_images": 1},
            "max_failed_share": 1.0,
        },
        env={"isolation": isolation},
        algorithm={"credit": "state_groups", "discount": 0.9},
        generator={"max_model_len": 1024, "max_num_batched_tokens": 1024},
        trainer={"max_tokens_per_micro_batch": 1024},
        optim={"lr": 1.0e-3},
        parity={"num_samples": 2},
        checkpoint={"every": 0},
    )


def run(config: Config) -> list[dict[str, Any]]:
    with TrainConsole("episodes", NUM_STEPS, console=Console(file=io.StringIO())) as console:
        grpo.train(config, console)
    lines = (config.run_dir / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("episodes")
    (made / "lake.py").write_text(PLUG_INS)
    return made


@pytest.fixture(scope="module")
def in_threads(tiny_model: Path, folder: Path, local_ray: None) -> list[dict[str, Any]]:
    """The steps' metrics of a run whose episodes are played in threads."""
    return run(config_of(tiny_model, folder, "thread", "thread"))


@pytest.mark.timeout(600)
def test_episodes_train_with_parity(in_threads: list[dict[str, Any]]) -> None:
    """All but the last image is forgotten: every turn forks."""
    assert len(in_threads) == NUM_STEPS
    for metrics in in_threads:
        assert metrics["parity/max_abs_logprob_diff"] < 1e-3
        assert metrics["episode/num_turns_mean"] == 3.0
        assert metrics["episode/num_ledgers_mean"] == 3.0
        assert metrics["optim/grad_norm"] > 0
    assert sum(metrics["failures/env_raised"] for metrics in in_threads) > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_numbers_are_the_same_wherever_episodes_are_played(
    in_threads: list[dict[str, Any]], tiny_model: Path, folder: Path
) -> None:
    in_processes = run(config_of(tiny_model, folder, "process", "process"))
    assert [repeatable(m) for m in in_processes] == [repeatable(m) for m in in_threads]
