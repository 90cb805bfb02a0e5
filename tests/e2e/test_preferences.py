"""Preference learning in whole runs: held-out pairs are told apart, resumed or not, from rows or groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from whole_runs import metrics, run

from vlrl import preferences
from vlrl.config import Config
from vlrl.errors import Interrupted
from vlrl.tracking.metrics import METRICS

PAIRS = '''
from vlrl.envs.visual.questions.digit_sum import DigitSum


class Pairs(DigitSum):
    """The digits' questions; the rejected completion gives the answer before it thinks."""

    def __getitem__(self, index):
        row = super().__getitem__(index)
        worse = f"<answer>{row['answer']}</answer><think>0</think>"
        return {"id": row["id"], "prompt": row["messages"], "chosen": row["target"], "rejected": worse}


class Labels(Pairs):
    """The same, a completion at a time."""

    def __getitem__(self, index):
        row = super().__getitem__(index)
        label = index % 2 == 0
        completion = row["chosen" if label else "rejected"]
        return {"id": row["id"], "prompt": row["prompt"], "completion": completion, "label": label}
'''


@pytest.fixture(scope="module")
def new_run(tiny_model: Path, local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A config by name, with sections of its own."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "pairs.py").write_text(PAIRS)

    def make(name: str, rows: str = "Pairs", **sections: Any) -> Config:
        source = {"name": f"{folder}/pairs.py:{rows}"}
        defaults: dict[str, Any] = {
            "run": {"name": name, "dir": str(folder), "seed": 5},
            "data": {
                "train": {**source, "options": {"num_rows": 64}},
                "eval": {**source, "options": {"split": "heldout", "num_rows": 16}},
            },
            "num_steps": 8,
            "optim": {"lr": 1e-3, "schedule": "constant", "warmup_steps": 1},
            "checkpoint": {"every": 0},
            "logging": {"tensorboard": False},
            "preferences": {"batch_size": 8},
        }
        return make_config(tiny_model, **{**defaults, **sections})

    return make


@pytest.mark.slow
def test_dpo_tells_heldout_pairs_apart(new_run: Any) -> None:
    config = new_run("dpo")
    summary = run(config, preferences.train)
    assert summary["heldout_preference_accuracy_before"] == 0.5  # the policy is the reference: all are ties
    assert summary["heldout_preference_accuracy_after"] >= 0.95
    assert summary["heldout_preference_margin_after"] > 0.05
    found = metrics(config)
    assert found[0]["preference/loss"] == pytest.approx(0.6931, abs=1e-3)
    assert found[-1]["preference/loss"] < found[0]["preference/loss"]
    assert all(step["optim/grad_norm"] > 0 for step in found)
    assert {name for name in found[-1] if name != "step"} <= METRICS.keys()
    assert (config.run_dir / "model" / "model.safetensors").exists()


@pytest.mark.slow(together=True)
@pytest.mark.parametrize(
    ("rows", "loss"), [("Pairs", "ipo"), ("Pairs", "kto"), ("Labels", "kto")], ids=["ipo", "kto", "labels"]
)
def test_other_losses_tell_heldout_completions_apart(new_run: Any, rows: str, loss: str) -> None:
    config = new_run(f"{loss}-{rows}", rows, preferences={"batch_size": 8, "loss": loss})
    summary = run(config, preferences.train)
    assert summary["heldout_preference_accuracy_after"] >= 0.9
    if loss == "kto":
        assert metrics(config)[0]["preference/kl"] == 0.0  # nothing has moved yet
        assert any(step["preference/kl"] > 0 for step in metrics(config))


@pytest.mark.slow(together=True)
def test_a_resumed_run_is_the_run(new_run: Any) -> None:
    whole, stopped = (
        new_run(name, preferences={"batch_size": 8, "loss": "kto"}) for name in ("whole", "stop")
    )
    run(whole, preferences.train)
    with pytest.raises(Interrupted, match="--resume"):
        run(stopped, preferences.train, stop_after=2)
    run(stopped, preferences.train, resume=True)
    assert metrics(stopped) == metrics(whole)
    weights = [(c.run_dir / "model" / "model.safetensors").read_bytes() for c in (whole, stopped)]
    assert weights[0] == weights[1]


VOWELS = '''
def vowels(completion, answer):
    """Something a random model gets more or less of."""
    return sum(c in "aeiou0123456789" for c in completion) / 10
'''


@pytest.mark.slow(together=True)
def test_groups_give_pairs_to_dpo_online(new_run: Any, tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(VOWELS)
    config = new_run(
        "online",
        data={"train": {"name": "digit_sum"}},
        rewards=[{"name": f"{tmp_path}/reward.py:vowels"}],
        preferences={"beta": 0.05},
        num_steps=12,
        rollout={"prompts_per_step": 8, "group_size": 4, "max_tokens": 12},
    )
    run(config)
    found = metrics(config)
    assert found[0]["preference/accuracy"] == 0.5
    assert all(step["parity/max_abs_logprob_diff"] < 1e-4 for step in found)
    assert sum(s["reward/mean"] for s in found[-3:]) > sum(s["reward/mean"] for s in found[:3])
