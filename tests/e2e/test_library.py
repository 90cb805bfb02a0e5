"""Training from Python objects through the real engines, beside a running event loop as in a notebook."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vlrl import GRPO, TrainResult, episodes
from vlrl.protocols import Observation, StepResult

pytestmark = [pytest.mark.slow(together=True), pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {
    "num_steps": 2,
    "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 8},
    "generator": {"max_model_len": 256, "max_num_seqs": 8},
    "logging": {"tensorboard": False},
}


def test_objects_of_a_program_train_beside_an_event_loop(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    vowels = set("aeiou")
    told: list[tuple[str, int, Any]] = []

    def share_of_vowels(completion: str, answer: str) -> float:
        return sum(letter in vowels for letter in completion) / 20

    def against_the_worst(trajectories: Any) -> list[float]:
        rewards = [t.score.total for t in trajectories]
        return [reward - min(rewards) for reward in rewards]

    def likelihood(trainer_logprobs: Any, anchor_logprobs: Any, advantages: Any) -> Any:
        return -advantages * trainer_logprobs, advantages > 1e9

    def row(color: str) -> dict[str, Any]:
        return {"prompt": "3+5?", "image": Image.new("RGB", (56, 56), color), "answer": color}

    async def notebook() -> tuple[TrainResult, Any]:
        trainer = GRPO(
            tiny_model,
            [row("red"), row("blue")],
            share_of_vowels,
            eval_rows=[row("green")],
            on_step=lambda step, metrics: told.append(("step", step, dict(metrics))),
            on_rollouts=lambda step, rollouts: told.append(("rollouts", step, rollouts)),
            on_eval=lambda updates, metrics: told.append(("eval", updates, dict(metrics))),
            algorithm={"credit": against_the_worst, "loss": likelihood},
            run={"dir": tmp_path},
            **SMALL,
        )
        result = trainer.train()
        return result, result.evaluate([row("red"), row("green"), row("blue")])

    result, evaluation = asyncio.run(notebook())
    assert [(kind, number) for kind, number, _ in told] == [
        *[("eval", 0), ("rollouts", 0), ("step", 0), ("rollouts", 1), ("step", 1), ("eval", 2)]
    ]
    assert result.run_dir == tmp_path / "grpo" and (result.model / "config.json").is_file()
    steps = [values for kind, _, values in told if kind == "step"]
    assert [step["reward/share_of_vowels"] for step in result.metrics] == [
        step["reward/share_of_vowels"] for step in steps
    ]
    for _, step, rollouts in [each for each in told if each[0] == "rollouts"]:
        assert len(rollouts) == 4
        for rollout in rollouts:
            assert rollout["reward"] == pytest.approx(share_of_vowels(rollout["completion"], ""))
            assert rollout["step"] == step and rollout["answer"] in ("red", "blue")
            assert min(r["advantage"] or 0 for r in rollouts) >= 0, "none is below the worst"
    assert evaluation.num_samples == 3
    assert result.summary["num_heldout"] == 1


def test_an_environment_of_ones_own_is_played(tiny_model: Path, tmp_path: Path, local_ray: None) -> None:
    class Countdown:
        """Pays in its last turn; `turns` are the program's own option."""

        def __init__(self, turns: int) -> None:
            self.turns = turns

        def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
            self.left, self.color = self.turns, (seed % 256, 0, 0)
            return self._seen()

        def step(self, action: str) -> StepResult:
            self.left -= 1
            return StepResult(self._seen(), float(len(action) % 3), self.left == 0, truncated=False)

        def close(self) -> None:
            """There is nothing to free."""

        def _seen(self) -> Observation:
            return Observation(f"{self.left}?", images=[Image.new("RGB", (56, 56), self.color)])

    told: list[dict[str, Any]] = []
    rows = episodes(Countdown, num_rows=8, options={"turns": 2})
    result = GRPO(
        tiny_model,
        rows,
        on_rollouts=lambda step, rollouts: told.extend(rollouts),
        run={"dir": tmp_path, "name": "countdown"},
        **SMALL,
    ).train()
    assert len(result.metrics) == 2 and len(told) == 8
    assert all(len(rollout["turns"]) == 2 for rollout in told)
    assert all(rollout["reward"] == sum(turn["reward"] for turn in rollout["turns"]) for rollout in told)


def test_a_callback_that_raises_ends_the_run(tiny_model: Path, tmp_path: Path, local_ray: None) -> None:
    def fail(step: int, metrics: Mapping[str, float]) -> None:
        raise LookupError("the program's own mistake")

    trainer = GRPO(
        tiny_model,
        [{"prompt": "3+5?", "answer": "8"}],
        "answer_exact",
        on_step=fail,
        run={"dir": tmp_path, "name": "fails"},
        **SMALL,
    )
    with pytest.raises(LookupError, match="the program's own mistake"):
        trainer.train()
    assert not (tmp_path / "fails" / "summary.json").exists()


def test_the_example_learns_to_see(tmp_path: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("library_example", ROOT / "examples" / "library.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    result: TrainResult = example.result
    assert result.summary["heldout_accuracy_after_greedy"] == 1.0
    rewards = [step["reward/mean"] for step in result.metrics]
    assert sum(rewards[-10:]) / 10 > sum(rewards[:10]) / 10 + 0.3
