"""Rejection sampling in one command: generated, scored, the best kept and imitated, and resumed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from builders import make_config
from rich.console import Console

from vlrl import raft
from vlrl.config import Config
from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset
from vlrl.errors import ConfigError
from vlrl.raft import Rejection
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.rollouts.read import read_rollouts

VOWELS = '''
def vowels(completion, answer):
    """Something a random model gets more or less of."""
    return sum(c in "aeiou0123456789" for c in completion) / 10
'''
NUM_PROMPTS = 6


@pytest.fixture
def config(tiny_model: Path, tmp_path: Path) -> Config:
    (tmp_path / "reward.py").write_text(VOWELS)
    return make_config(
        tiny_model,
        run={"name": "raft", "dir": str(tmp_path), "seed": 3},
        rewards=[{"name": f"{tmp_path}/reward.py:vowels"}],
        rollout={"max_tokens": 128},  # a random model seldom ends by itself
        num_steps=6,
        optim={"lr": 3e-3, "schedule": "constant", "warmup_steps": 1},
        sft={"batch_size": 6},
        checkpoint={"every": 0},
        logging={"tensorboard": False},
    )


def run(config: Config, rejection: Rejection, *, resume: bool = False) -> dict[str, object]:
    with TrainConsole("test", config.num_steps, console=Console(file=io.StringIO())) as console:
        return raft.train(config, console, rejection=rejection, resume=resume)


@pytest.mark.slow(together=True)
def test_the_best_completions_are_imitated(config: Config, local_ray: None) -> None:
    rejection = Rejection(NUM_PROMPTS, min_reward=0.1)
    run(config, rejection)
    path = config.run_dir / "rollouts" / raft.ROLLOUTS
    records = read_rollouts(path)
    assert len(records) == 8 * config.rollout.group_size  # rounded up to whole batches of 4 prompts
    assert len({record["sample_id"] for record in records}) == 8
    source = DatasetConfig(name="rollouts", options={"path": str(path), "min_reward": 0.1})
    kept = list(open_dataset(source, "data.train"))
    best: dict[str, float] = {}
    for record in records:
        if record["outcome"] == "ok":
            best[record["sample_id"]] = max(best.get(record["sample_id"], 0.0), record["reward"])
    assert {row["id"]: row["metadata"]["reward"] for row in kept} == {
        k: v for k, v in best.items() if v >= 0.1
    }
    losses = [
        json.loads(line)["sft/loss"] for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()
    ]
    assert losses[-1] < losses[0]
    assert (config.run_dir / "model" / "model.safetensors").is_file()
    written = path.stat().st_mtime_ns
    more = config.model_copy(update={"num_steps": 7})
    run(more, rejection, resume=True)
    assert path.stat().st_mtime_ns == written  # a resumed run imitates what was generated then
    assert len((config.run_dir / "metrics.jsonl").read_text().splitlines()) == 7


def test_what_has_no_best_is_refused_before_anything_starts(config: Config) -> None:
    with pytest.raises(ConfigError, match="rewards is empty; give at least one"):
        run(config.model_copy(update={"rewards": []}), Rejection(4))
