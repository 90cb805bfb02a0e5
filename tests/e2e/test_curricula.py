"""Adaptive samplers and `vlrl data rate` with the real engines, and what the sampler gains."""

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
from vlrl.data.curriculum.rate_file import RateJournal
from vlrl.run.players import rate
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.metrics import repeatable
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

ROOT = Path(__file__).parents[2]
NUM_ROWS = 10
REWARD = '''
def vowels(completion, answer):
    """Something a random model gets more or less of."""
    return sum(c in "aeiou0123456789" for c in completion) / 4
'''


def config_of(model: Path, folder: Path, name: str, **sections: Any) -> Config:
    (folder / "reward.py").write_text(REWARD)
    data = {"train": {"name": "digit_sum", "options": {"num_rows": NUM_ROWS}, **sections.pop("source", {})}}
    return make_config(
        model,
        run={"name": name, "dir": str(folder), "seed": 5},
        data={**data, "pass_threshold": 0.5},
        rewards=[{"name": f"{folder}/reward.py:vowels"}],
        optim={"lr": 3e-3, "schedule": "constant"},
        trainer={"num_ranks": 1, "cpus_per_rank": 0.1},
        logging={"tensorboard": False},
        **sections,
    )


def quiet(num_steps: int = 1) -> TrainConsole:
    return TrainConsole("test", num_steps, console=Console(file=io.StringIO()))


def trained(config: Config) -> list[list[str]]:
    """Samples of each step."""
    lines = (config.run_dir / "samples.jsonl").read_text().splitlines()
    return [json.loads(line)["sample_ids"] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_resumed_run_is_the_run_that_was_not_stopped(
    tiny_model: Path, tmp_path: Path, local_ray: None, num_workers: int
) -> None:
    """Rows, rewards and gradients; with rollout workers the same as without."""

    def run(name: str, num_steps: int, *, resume: bool = False, workers: int = num_workers) -> Config:
        config = config_of(
            tiny_model,
            tmp_path,
            name,
            source={"sampler": "learnability"},
            num_steps=num_steps,
            rollout={"num_workers": workers, "cpus_per_worker": 0.1} if workers else {},
        )
        with quiet(num_steps) as console:
            grpo.train(config, console, resume=resume)
        return config

    whole = run("whole", 5)
    run("stopped", 2)
    resumed = run("stopped", 5, resume=True)
    assert trained(resumed) == trained(whole)
    kept = [
        [repeatable(step) for step in read_metrics(config.run_dir / METRICS_FILE)]
        for config in (whole, resumed)
    ]
    assert kept[0] == kept[1]
    assert kept[0][-1]["sampler/num_rows_seen"] > 0
    if num_workers:
        assert trained(run("alone", 5, workers=0)) == trained(whole)


@pytest.mark.slow
def test_rates_are_the_same_after_a_kill_and_lead_a_run(
    tiny_model: Path, tmp_path: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate, "ROWS_PER_BLOCK", 4)
    config = config_of(tiny_model, tmp_path, "rated")
    with quiet() as console:
        (whole,) = rate.rate_rows(config, 4, tmp_path / "whole", console)
    assert whole.rates.missing.size == 0
    assert whole.rates.scored.tolist() == [4] * NUM_ROWS

    added, real = [], RateJournal.add

    def dies_at_the_second(self: RateJournal, **counts: Any) -> None:
        if added:
            raise KeyboardInterrupt
        added.append(counts)
        real(self, **counts)

    with monkeypatch.context() as patch:
        patch.setattr(RateJournal, "add", dies_at_the_second)
        with quiet() as console, pytest.raises(KeyboardInterrupt):
            rate.rate_rows(config, 4, tmp_path / "killed", console)
    assert not list((tmp_path / "killed").glob("*.rates"))
    with quiet() as console:
        (again,) = rate.rate_rows(config, 4, tmp_path / "killed", console)
        (nothing,) = rate.rate_rows(config, 4, tmp_path / "killed", console)
    assert again.path.name == whole.path.name
    assert again.path.read_bytes() == whole.path.read_bytes()
    assert 0 < again.num_generated_tokens < whole.num_generated_tokens
    assert nothing.num_generated_tokens == 0

    most = whole.rates.rates.max()
    sampler = {
        "name": "band",
        "options": {"low": float(most), "high": float(most)},
        "adaptive": False,
        "start_rates": str(whole.path),
    }
    leading = config_of(tiny_model, tmp_path, "led", source={"sampler": sampler}, num_steps=2)
    with quiet(2) as console:
        grpo.train(leading, console)
    likeliest = {f"digit_sum/train/{row}" for row in (whole.rates.rates == most).nonzero()[0]}
    assert {sample for step in trained(leading) for sample in step} <= likeliest
