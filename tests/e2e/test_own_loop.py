"""A program's own loop through real engines: what vlrl's loop does, and what that one cannot."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from vlrl import GRPO, TrainingClient, episodes
from vlrl.errors import CheckpointError, ConfigError
from vlrl.protocols import Observation, StepResult
from vlrl.types import Group

pytestmark = [pytest.mark.slow(together=True), pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
SECTIONS: dict[str, Any] = {
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_tokens": 8},
    "generator": {"max_model_len": 256, "max_num_seqs": 16},
    "logging": {"tensorboard": False},
}
RED = {"id": "red", "prompt": "3+5?", "image": Image.new("RGB", (56, 56), "red"), "answer": "8"}
TEXT = {"id": "text", "prompt": "2+2?", "answer": "4"}


def vowels(completion: str, answer: str) -> float:
    return sum(letter in "aeiou" for letter in completion) / 20


def weights(folder: Path) -> Mapping[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_grpo_written_as_a_loop_gives_the_weights_of_grpo(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    async def notebook() -> list[dict[str, float]]:
        with TrainingClient(
            tiny_model, vowels, run={"dir": tmp_path}, optim={"lr": 1e-3}, **SECTIONS
        ) as client:
            metrics = []
            for step in range(3):
                groups = client.sample([RED, RED])
                metrics.append(client.forward_backward(groups) | client.optim_step())
                if step == 1:
                    client.save_state(tmp_path / "state")
            client.export(tmp_path / "loop")
            client.load_state(tmp_path / "state")
            assert client.num_updates == 2
            again = client.forward_backward(client.sample([RED, RED])) | client.optim_step()
            assert again == metrics[-1]
            client.export(tmp_path / "again")
            with pytest.raises(CheckpointError, match="holds no state of a TrainingClient"):
                client.load_state(tmp_path / "nowhere")
        return metrics

    metrics = asyncio.run(notebook())
    result = GRPO(
        tiny_model,
        [RED],
        vowels,
        num_steps=3,
        run={"dir": tmp_path},
        checkpoint={"every": 0},
        optim={"lr": 1e-3, "schedule": "constant", "warmup_steps": 0},
        **SECTIONS,
    ).train()
    assert same(tmp_path / "loop", result.model) and same(tmp_path / "again", result.model)
    assert not same(tmp_path / "loop", tmp_path / "state" / "model")
    for name in ("optim/grad_norm", "policy/loss", "parity/max_abs_logprob_diff"):
        assert [step[name] for step in metrics] == [step[name] for step in result.metrics], name


class Countdown:
    """Two turns, each with an image."""

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        self.left, self.color = 2, (seed % 256, 0, 0)
        return self._seen()

    def step(self, action: str) -> StepResult:
        self.left -= 1
        return StepResult(self._seen(), float(len(action)), self.left == 0, truncated=False)

    def close(self) -> None:
        """There is nothing to free."""

    def _seen(self) -> Observation:
        return Observation(f"{self.left}?", images=[Image.new("RGB", (56, 56), self.color)])


@pytest.fixture(scope="module")
def client(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainingClient]:
    """Two ranks, no rewards, and no weight decay: without a gradient nothing changes."""
    with TrainingClient(
        tiny_model,
        run={"dir": tmp_path_factory.mktemp("runs")},
        trainer={"num_ranks": 2},
        optim={"lr": 1e-3, "weight_decay": 0.0, "max_grad_norm": 1e9},
        **SECTIONS,
    ) as opened:
        yield opened


action = attrgetter("action")


def equal(groups: list[Group], advantage: float) -> list[list[float]]:
    return [[advantage] * len(group.trajectories) for group in groups]


def norm_of(client: TrainingClient, *batches: tuple[list[Group], list[Any]]) -> float:
    """The norm of batches' gradients; a rate of 0 leaves the weights."""
    for groups, advantages in batches:
        client.forward_backward(groups, advantages)
    return client.optim_step(0.0)["optim/grad_norm"]


def test_gradients_of_several_calls_add_up(local_ray: None, client: TrainingClient) -> None:
    images, texts = client.sample([RED]), client.sample([TEXT])
    alone, other = norm_of(client, (images, equal(images, 1.0))), norm_of(client, (texts, equal(texts, 1.0)))
    sums = [
        norm_of(client, (images, equal(images, 1.0)), (texts, equal(texts, 1.0))),
        norm_of(client, (texts, equal(texts, 1.0)), (images, equal(images, 1.0))),  # the tower begins later
    ]
    assert sums[0] == pytest.approx(sums[1], rel=1e-5)
    assert max(alone, other) < sums[0] < alone + other
    both = [*images, *texts]
    assert client.config.algorithm.aggregation == "token"
    num_tokens = [sum(t.num_action_tokens for t in g.trajectories) for g in both]
    shares = [sum(num_tokens) / number for number in num_tokens]  # each call is a mean over its own tokens
    as_one = [[share] * 4 for share in shares]
    assert norm_of(client, (both, as_one)) == pytest.approx(sums[0], rel=1e-5)
    doubled = norm_of(client, (images, equal(images, 1.0)), (images, equal(images, 1.0)))
    assert doubled == pytest.approx(2 * alone, rel=1e-5)
    client.forward_backward(images, equal(images, 0.0))
    assert client.optim_step(0.0)["optim/empty_fraction"] == 1.0, "there was nothing to train"


def test_advantages_of_tokens_turns_and_episodes(local_ray: None, client: TrainingClient) -> None:
    rows = client.rows(episodes(Countdown, num_rows=2))
    groups = client.sample(rows, 2)
    assert [len(t.turns) for g in groups for t in g.trajectories] == [2] * 4
    assert all(t.score is None and t.episode_return > 0 for g in groups for t in g.trajectories)
    lengths = [
        [[end - start for start, end in (turn.action for turn in t.turns)] for t in g.trajectories]
        for g in groups
    ]
    of_episodes = norm_of(client, (groups, equal(groups, 0.5)))
    of_turns = norm_of(client, (groups, [[[0.5, 0.5] for _ in g] for g in lengths]))
    of_tokens = norm_of(client, (groups, [[[0.5] * sum(turns) for turns in g] for g in lengths]))
    assert of_episodes == of_turns == of_tokens
    last = norm_of(client, (groups, [[[0.0, 0.5] for _ in g] for g in lengths]))
    last_tokens = [[np.repeat([0.0, 0.5], turns) for turns in g] for g in lengths]
    assert 0 < last != of_episodes and last == norm_of(client, (groups, last_tokens))


def test_the_engines_follow_the_weights_and_logprobs_are_the_trainers(
    local_ray: None, client: TrainingClient
) -> None:
    groups = client.sample([RED, TEXT])

    def largest() -> float:
        pairs = zip(client.logprobs(groups), groups, strict=True)
        gaps = [
            np.abs(found - np.concatenate([led.sampler_logprobs[led.loss_mask] for led in t.ledgers])).max()
            for of_group, group in pairs
            for found, t in zip(of_group, group.trajectories, strict=True)
        ]
        return float(max(gaps))

    assert largest() < 1e-5
    metrics = client.forward_backward_targets([{**RED, "target": "8"}, {**TEXT, "target": "4"}])
    assert metrics["policy/loss"] > 1.0
    before = client.num_updates
    client.optim_step()
    assert client.num_updates == before + 1 and largest() > 1e-3
    stale = client.forward_backward(groups, equal(groups, 1.0))
    assert stale["off_policy/staleness_mean"] == 1.0 and "parity/max_abs_logprob_diff" not in stale
    client.optim_step(0.0)
    groups = client.sample([RED, TEXT])
    assert largest() < 1e-5, "the new ones are of the new weights"
    fresh = client.forward_backward(groups, equal(groups, 1.0))
    assert fresh["off_policy/staleness_mean"] == 0.0 and fresh["parity/max_abs_logprob_diff"] < 1e-5
    for refused in (client.save_state, client.load_state):
        with pytest.raises(ConfigError, match=r"call it after optim_step\(\)"):
            refused("nowhere")
    client.optim_step(0.0)
    with pytest.raises(ConfigError, match=r"follows forward_backward\(\)"):
        client.optim_step()
    with pytest.raises(ConfigError, match="no advantages, and without rewards there are no scores"):
        client.forward_backward(groups)
    greedy = client.sample([RED], 2, greedy=True)[0].trajectories
    assert greedy[0].action_ids == greedy[1].action_ids


def test_the_baseline_of_remax_is_sampled_beside_each_group(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    alone = {**SECTIONS, "rollout": {"group_size": 1, "max_tokens": 8}}
    with TrainingClient(
        tiny_model, vowels, algorithm="remax", run={"dir": tmp_path}, optim={"lr": 1e-3}, **alone
    ) as client:
        groups = client.sample([RED, TEXT] * 4)
        assert all(len(group.trajectories) == len(group.greedy or ()) == 1 for group in groups)
        client.forward_backward(groups)
        gains = [
            t.score.total - greedy.score.total
            for group in groups
            for t, greedy in zip(group.trajectories, group.greedy or (), strict=True)
            if t.score is not None and greedy.score is not None
        ]
        trained = [float(group.credits[0].advantages[0][group.credits[0].trained[0]][0]) for group in groups]
        assert trained == pytest.approx(gains) and any(gains)
        assert client.optim_step()["optim/grad_norm"] > 0
        assert all(group.greedy is None for group in client.sample([RED], greedy=True))


def test_the_example_learns_to_see(tmp_path: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("own_loop_example", ROOT / "examples" / "own_loop.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert example.accuracy == 1.0
    assert (tmp_path / "runs" / "own-loop-model" / "config.json").is_file()
