"""Training and evaluating as a notebook does: beside a running event loop, with functions in the config."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from vlrl import grpo
from vlrl.evaluate import evaluate_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_run_trains_and_evaluates_beside_an_event_loop(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    vowels = set("aeiou")

    def share_of_vowels(completion: str, answer: str) -> float:
        return sum(letter in vowels for letter in completion) / 20

    config: dict[str, Any] = {
        "run": {"name": "a", "dir": str(tmp_path)},
        "model": {"path": str(tiny_model)},
        "data": {
            "train": {"name": "digit_sum"},
            "eval": {"name": "digit_sum", "options": {"split": "heldout"}},
        },
        "rewards": [share_of_vowels],
        "num_steps": 2,
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 8},
        "generator": {"max_model_len": 128, "max_num_seqs": 8},
        "eval": {"num_samples": 2},
        "logging": {"tensorboard": False},
    }
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    async def notebook() -> tuple[dict[str, object], Any]:
        summary = grpo.train(config)
        return summary, evaluate_model({**config, "model": {"path": str(tmp_path / "a" / "model")}})

    summary, evaluation = asyncio.run(notebook())
    assert summary["num_steps"] == 2
    steps = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    assert len(steps) == 2 and "reward/share_of_vowels" in steps[0]
    assert evaluation.num_samples == 2
    assert evaluation.accuracy_greedy == pytest.approx(summary["heldout_accuracy_after_greedy"])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
