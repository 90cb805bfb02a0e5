"""Algorithms by name in whole runs with the real engines: presets, and a stranger's loss."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from rich.console import Console

from vlrl import grpo
from vlrl.tracking.console import TrainConsole

LOSS = '''
import torch


def loss(trainer_logprobs, anchor_logprobs, advantages, *, sequence_sums, factor=1.0):
    """The policy gradient, times a constant."""
    lengths = sequence_sums(torch.ones_like(advantages))
    return -factor * advantages * trainer_logprobs * lengths / lengths, advantages > 9
'''
REWARD = '''
def vowels(completion, answer):
    """Something a random model gets more or less of."""
    return sum(c in "aeiou0123456789" for c in completion) / 10
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    (made / "reward.py").write_text(REWARD)
    (made / "my_loss.py").write_text(LOSS)
    return made


def steps(model: Path, folder: Path, name: str, algorithm: Any, **sections: Any) -> list[dict[str, Any]]:
    """The metrics of a run of two steps."""
    config = make_config(
        model,
        run={"name": name, "dir": str(folder), "seed": 11},
        rewards=[{"name": f"{folder}/reward.py:vowels"}],
        num_steps=2,
        optim={"lr": 3e-3},
        algorithm=algorithm,
        checkpoint={"every": 0},
        logging={"tensorboard": False},
        trainer={"num_ranks": 2, "cpus_per_rank": 0.1},
        **sections,
    )
    with TrainConsole("test", config.num_steps, console=Console(file=io.StringIO())) as console:
        grpo.train(config, console)
    return [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_presets_and_a_strangers_loss_train(
    tiny_model: Path, folder: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy has not moved at the first update, so GSPO has the gradient of the policy gradient there."""
    monkeypatch.chdir(folder)  # ranks have another working folder
    mine = {"preset": "gspo", "loss": {"name": "./my_loss.py:loss", "options": {"factor": 2.0}}}
    runs = {
        "gspo": steps(tiny_model, folder, "gspo", "gspo"),
        "mine": steps(tiny_model, folder, "mine", mine),
        "remax": steps(tiny_model, folder, "remax", {"preset": "remax", "normalize": "batch"}),
    }
    for name, found in runs.items():
        assert [step["step"] for step in found] == [0, 1], name
        assert all(step["optim/grad_norm"] > 0 for step in found), name
    first = {name: found[0]["optim/grad_norm"] for name, found in runs.items()}
    assert first["mine"] == pytest.approx(2 * first["gspo"], rel=1e-3)
    for name in ("mine", "remax"):  # a greedy completion beside a group changes nothing of the group
        assert runs[name][0]["reward/mean"] == runs["gspo"][0]["reward/mean"], (
            "the same seed, the same tokens"
        )
    assert all(0 <= step["baseline/greedy_reward"] <= 1.2 for step in runs["remax"])
    assert all("baseline/greedy_reward" not in step for step in runs["gspo"])


@pytest.mark.slow
def test_what_holds_a_policy_back_is_in_the_metrics(tiny_model: Path, folder: Path, local_ray: None) -> None:
    """A reference that is reset after each update is the policy again at the next one's begin: KL is 0."""
    held = {
        "preset": "reinforce_pp",
        "kl_coef": 0.1,
        "kl_in": "reward",
        "kl_adaptive": {"target": 1e-3, "horizon": 160},
        "entropy_adaptive": {"target": 20.0, "increment": 0.01},
        "reference": {"every": 1},
        "selections": ["top_entropy", "clip_cov"],
    }
    first, second = steps(tiny_model, folder, "held", held)
    assert (first["policy/kl_coef"], second["policy/kl_coef"]) == pytest.approx((0.1, 0.098))
    assert (first["policy/entropy_coef"], second["policy/entropy_coef"]) == (0.0, 0.01)
    for step in (first, second):
        assert step["policy/kl_reference"] == pytest.approx(0, abs=1e-9)
        assert 0.79 < step["policy/unselected_fraction"] < 0.9
        assert step["optim/grad_norm"] > 0


@pytest.mark.slow
def test_a_critic_is_the_baseline_of_groups_of_one(tiny_model: Path, folder: Path, local_ray: None) -> None:
    """Generation goes on meanwhile and a worker packs; in its first step the critic learns alone."""
    alone = {"prompts_per_step": 8, "group_size": 1, "num_workers": 1}
    critic = {"lr": 1e-3, "warmup_steps": 1}
    first, second = steps(
        tiny_model,
        folder,
        "critic",
        {"preset": "ppo", "critic": critic, "kl_coef": 0.1, "kl_in": "reward"},
        rollout=alone,
        asynchronous={"mode": "async"},
        episodes={"lockstep": False},
    )
    assert first["optim/grad_norm"] == 0 < second["optim/grad_norm"]
    assert first["critic/value_mean"] == 0 != second["critic/value_mean"]
    for step in (first, second):
        assert step["critic/loss"] > 0 and step["critic/explained_variance"] <= 1
        assert step["policy/kl_reference"] == pytest.approx(0, abs=1e-9)
