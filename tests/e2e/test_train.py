"""Law 8 on whole runs of GRPO: the same seed gives the same numbers, stopped in between or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from whole_runs import metrics, rollouts, run

from vlrl.config import Config
from vlrl.errors import Interrupted

NUM_STEPS = 5
STOP_AFTER = 2

REWARD = '''
def vowels(completion, answer):
    """Something a random model gets more or less of."""
    return sum(c in "aeiou0123456789" for c in completion) / 10
'''


@pytest.fixture(scope="module")
def new_run(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A config by name; all runs differ in nothing but their folder."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "reward.py").write_text(REWARD)

    def make(name: str) -> Config:
        return make_config(
            tiny_model,
            run={"name": name, "dir": str(folder), "seed": 11},
            data={
                "train": {"name": "digit_sum", "limit": 14},  # an epoch ends within a step
                "eval": {"name": "digit_sum", "options": {"split": "heldout"}},
            },
            rewards=[{"name": f"{folder}/reward.py:vowels"}, {"name": "answer_exact"}],
            num_steps=NUM_STEPS,
            optim={"lr": 3e-3, "schedule": "linear", "warmup_steps": 1},
            algorithm={"num_minibatches": 2},
            eval={"num_samples": 4, "every": 2, "during_samples": 2},
            checkpoint={"every": 0},
            logging={"tensorboard": False},
        )

    return make


@pytest.fixture(scope="module")
def uninterrupted(new_run: Any, local_ray: None) -> tuple[Config, dict[str, Any]]:
    config = new_run("whole")
    return config, run(config)


def test_a_run_trains_and_keeps_parity(uninterrupted: tuple[Config, dict[str, Any]]) -> None:
    config, summary = uninterrupted
    found = metrics(config)
    assert [m["step"] for m in found] == list(range(NUM_STEPS))
    assert all(m["parity/max_abs_logprob_diff"] < 1e-4 for m in found)
    assert all(m["optim/grad_norm"] > 0 for m in found)
    assert len({m["reward/mean"] for m in found}) > 1
    assert "heldout/accuracy_greedy" in found[1]
    assert summary["num_steps"] == NUM_STEPS
    told = {choice["name"]: choice for choice in summary["choices"]}
    assert told["attention of the language model"]["used"] == "nodes"
    assert told["optimizer"]["used"] == told["optimizer"]["wanted"] == "fused AdamW"
    assert (config.run_dir / "model" / "model.safetensors").exists()


def test_every_rollout_of_training_is_kept(uninterrupted: tuple[Config, dict[str, Any]]) -> None:
    """What the trainer computed of its tokens stands beside them, before the update that they are for."""
    config, _ = uninterrupted
    kept = rollouts(config.run_dir)
    assert [(r["step"], r["position"]) for r in kept[::4]] == [(n // 4, n) for n in range(4 * NUM_STEPS)]
    for record in kept:
        (ledger,) = record["ledgers"]
        trained = [advantage is not None for advantage in ledger["advantages"]]
        assert sum(trained) == record["num_generated_tokens"] == sum(ledger["loss_mask"])
        if record["group"] >= 2:  # the second update of a step is of newer weights
            continue
        known = [value is not None for value in ledger["trainer_logprobs"]]
        assert known == trained or not record["advantage"]
        for sampled, computed, entropy in zip(
            ledger["sampler_logprobs"], ledger["trainer_logprobs"], ledger["entropies"], strict=True
        ):
            assert computed is None or (abs(computed - sampled) < 1e-4 and entropy > 0)
    (config.run_dir / kept[0]["media"][0]["path"]).stat()
    assert max(abs(record["advantage"] or 0) for record in kept) > 0


def test_stopping_and_resuming_gives_the_same_metrics_and_weights(
    uninterrupted: tuple[Config, dict[str, Any]], new_run: Any
) -> None:
    config = new_run("stopped")
    with pytest.raises(Interrupted, match="--resume"):
        run(config, stop_after=STOP_AFTER)
    assert [m["step"] for m in metrics(config)] == list(range(STOP_AFTER + 1))
    summary = run(config, resume=True)
    assert metrics(config) == metrics(uninterrupted[0])
    assert rollouts(config.run_dir) == rollouts(uninterrupted[0].run_dir)
    weights = [(c.run_dir / "model" / "model.safetensors").read_bytes() for c in (config, uninterrupted[0])]
    assert weights[0] == weights[1]
    assert summary["heldout_accuracy_after"] == uninterrupted[1]["heldout_accuracy_after"]
