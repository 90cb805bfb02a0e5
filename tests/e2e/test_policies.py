"""Three policies in one environment with the real engines: two that learn, and an older self of one."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_context, make_group, open_tiny, random_image, row
from plain_model import model_of
from rich.console import Console
from safetensors.torch import load_file

from vlrl import grpo
from vlrl.config import Config
from vlrl.engine.policy import VllmPolicy
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import rollout_groups
from vlrl.run.parity import logprob_differences
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.metrics import repeatable
from vlrl.trainer.driver import Trainer

NUM_STEPS = 4
TOLERANCE = 1e-4

CHAIN = '''
from vlrl.protocols import Observation, StepResult


class Chain:
    """Each agent in turn says something; a team is paid for what the first two say."""

    agents = ("first", "second", "third")

    def reset(self, task, seed):
        self._said, self._seed = [], seed % 7
        return {"first": Observation(f"Add {self._seed} and 3.")}

    def step(self, actions):
        [(agent, text)] = actions.items()
        self._said.append(text)
        if len(self._said) < 3:
            following = self.agents[len(self._said)]
            return {following: StepResult(Observation(f"Add {len(text)} and 3."), 0.0, False, False)}
        rewards = [sum(map(ord, text)) % 5 / 4 for text in self._said]
        return {
            each: StepResult(Observation(), reward, True, False)
            for each, reward in zip(self.agents, rewards)
        }

    def close(self):
        pass
'''


def config_of(model: Path, folder: Path, name: str) -> Config:
    (folder / "chain.py").write_text(CHAIN)
    return make_config(
        model,
        run={"name": name, "dir": str(folder)},
        data={"train": {"name": "env", "options": {"env": f"{folder}/chain.py:Chain", "num_rows": 64}}},
        rewards=[{"name": "episode_return"}],
        num_steps=NUM_STEPS,
        env={"isolation": "inline"},
        lora={"rank": 3, "alpha": 6, "sync": "adapter"},
        policies={
            "giver": {"agents": ["first"]},
            "guesser": {"agents": ["second"]},
            "older": {"agents": ["third"], "copies": "giver", "every": 2},
        },
        algorithm={"kl_coef": 0.01},
        optim={"lr": 3e-2},
        weights={"checksums": True, "probe_every": 2},
        parity={"num_samples": 2},
        checkpoint={"every": 1, "keep": 10},
        logging={"tensorboard": False},
    )


def train(config: Config, *, resume: bool = False) -> list[dict[str, Any]]:
    with TrainConsole("policies", NUM_STEPS, console=Console(file=io.StringIO())) as console:
        grpo.train(config, console, resume=resume)
    return [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]


def adapters(config: Config, step: int) -> dict[str, dict[str, torch.Tensor]]:
    """Each policy's weights in the checkpoint after so many steps."""
    folder = config.run_dir / "checkpoints" / f"step_{step:06d}" / "model" / "adapter"
    return {each.name: load_file(each / "adapter_model.safetensors") for each in sorted(folder.iterdir())}


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    assert first.keys() == second.keys()
    return all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_policies_learn_beside_an_older_self_and_a_resumed_run_is_the_same(
    tiny_model: Path, tmp_path: Path, local_ray: None
) -> None:
    config = config_of(tiny_model, tmp_path, "whole")
    lines = train(config)
    for line in lines:
        assert line["parity/max_abs_logprob_diff"] < TOLERANCE
        assert line["policies/giver/num_trained_tokens"] > 0
        assert line["policies/guesser/num_trained_tokens"] > 0
        assert line["policies/older/num_trained_tokens"] == 0
        assert 0 <= line["policies/older/reward_mean"] <= 1
    after = {step: adapters(config, step) for step in range(1, NUM_STEPS + 1)}
    assert list(after[1]) == ["giver", "guesser", "older"]
    for step in range(1, NUM_STEPS):
        for policy in ("giver", "guesser"):
            assert not equal(after[step][policy], after[step + 1][policy])
    assert not any(tensor.any() for name, tensor in after[1]["older"].items() if ".lora_B." in name)
    assert equal(after[2]["older"], after[2]["giver"])  # taken again before step 2
    assert equal(after[3]["older"], after[2]["giver"])
    assert equal(after[4]["older"], after[4]["giver"])
    saved = model_of(config.run_dir / "model").state_dict()
    assert equal(saved, model_of(tiny_model).state_dict())

    resumed = config_of(tiny_model, tmp_path, "resumed")
    shutil.copytree(config.run_dir, resumed.run_dir)
    shutil.rmtree(resumed.run_dir / "checkpoints" / f"step_{NUM_STEPS:06d}")
    (resumed.run_dir / "summary.json").unlink()
    again = train(resumed, resume=True)
    assert [repeatable(line) for line in again] == [repeatable(line) for line in lines]
    assert all(equal(adapters(resumed, NUM_STEPS)[name], after[NUM_STEPS][name]) for name in after[NUM_STEPS])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_exchanged_adapters_are_found_by_parity(tiny_model: Path, tmp_path: Path, local_ray: None) -> None:
    """Both agents are asked the same: the prefixes that the engine caches are told apart, too."""
    config = make_config(
        tiny_model,
        run={"dir": str(tmp_path)},
        lora={"rank": 3, "alpha": 6, "sync": "adapter"},
        policies={"giver": {"agents": ["giver"]}, "guesser": {"agents": ["guesser"]}},
    )
    processor = open_tiny(tiny_model)
    asked = processor.sample(row("Which? " * 20, [random_image(56, 84)], row_id="0"))
    samples = [replace(asked, id=f"0/{agent}", agent=agent) for agent in ("giver", "guesser")]
    learnt = [
        make_group([4, 3], sample=sample, advantages=[1.0, -1.0], seed=number)
        for number, sample in enumerate(samples)
    ]
    trainer, policy = Trainer(config, processor.banned_token_ids), VllmPolicy(config, processor)

    def disagreement() -> float:
        context = make_context(policy, processor, config)
        groups = asyncio.run(rollout_groups(samples, context, seed_path=(0, 0))).groups
        return logprob_differences(groups, trainer, processor.pixels, config).largest

    try:
        trainer.wait_ready()
        policy.wait_ready()
        trainer.step(pack(learnt, processor.pixels, PackOptions.of(config)), "sft", 3e-2)
        trainer.write_weights()
        policy.load_weights(trainer.manifest, 1)
        assert disagreement() < TOLERANCE
        other = {"giver": "guesser", "guesser": "giver"}
        exchanged = tuple(
            replace(entry, name=entry.name.replace(f".{name}.", f".{other[name]}."))
            for entry in trainer.manifest.entries
            for name in other
            if f".{name}." in entry.name
        )
        kept = tmp_path / "exchanged"
        shutil.copyfile(trainer.manifest.path, kept)
        policy.load_weights(replace(trainer.manifest, path=str(kept), entries=exchanged), 2)
        assert disagreement() > 100 * TOLERANCE
    finally:
        policy.close()
        trainer.close()
