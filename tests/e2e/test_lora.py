"""LoRA on two ZeRO-3 ranks: what is saved, what vLLM gets and what the trainer computes are one model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_context, make_group, open_tiny, random_image, row
from plain_model import largest_difference, model_of
from tiny_families import build_qwen3_vl

from vlrl.algorithm.loss import kl_k3
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.config.memory import rounds_base
from vlrl.engine.policy import VllmPolicy
from vlrl.model.adapters.nf4 import round_layers
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.lora import adapter_targets
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import rollout_groups
from vlrl.run.parity import logprob_differences
from vlrl.trainer.driver import Trainer
from vlrl.types import Group
from vlrl.weights.manifest import Segment

# Minutes of engines and ranks; the pieces have quick tests of their own.
pytestmark = pytest.mark.slow(together=True)

TOLERANCE = 1e-4
TARGETS = ["*.layers.*.self_attn.?_proj.weight", "*.visual.*.mlp.*"]
KINDS: dict[str, dict[str, Any]] = {
    "merged": {},
    "adapter": {"sync": "adapter"},
    "nf4": {"base": "nf4"},
    "dora": {"dora": True, "targets": [*TARGETS, "*.visual.merger.*"]},
}


@dataclass
class Adapted:
    """A trainer of two ranks after two steps of its adapters, and what it wrote."""

    config: Config
    base: Path
    folder: Path
    processor: Any
    trainer: Trainer
    groups: list[Group]

    def batch(self, num_ranks: int = 2) -> Batch:
        return pack(
            self.groups,
            self.processor.pixels,
            PackOptions(
                num_ranks=num_ranks,
                max_tokens=2048,
                aggregation="token",
                max_completion_tokens=8,
                keep_zero_advantage=True,
            ),
        )

    def start(self) -> Any:
        """The model below the adapters, by transformers."""
        model = model_of(self.base)
        if rounds_base(self.config):
            assert self.config.lora
            round_layers(model, adapter_targets(model, self.config.lora))
        return model

    def logprobs(self) -> np.ndarray:
        """Logprobs of the trainer, sorted."""
        found = self.trainer.logprobs(self.batch())
        return np.sort(np.concatenate([m for rank in found for m in rank]))

    def logprobs_of(self, model: Any) -> np.ndarray:
        """Logprobs of a transformers model, sorted, from the batch of one rank."""
        wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=self.processor.banned_token_ids)
        with torch.no_grad():
            found = [
                wrapped(DeviceBatch.of(m, torch.device("cpu")))[0] for rank in self.batch(1) for m in rank
            ]
        return np.sort(torch.cat(found).numpy())


@pytest.fixture(scope="module", params=list(KINDS))
def adapted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, local_ray: None
) -> Iterator[Adapted]:
    root = tmp_path_factory.mktemp("lora")
    base = build_qwen3_vl(root / "base")
    processor = open_tiny(base)
    config = make_config(
        base,
        lora={"rank": 4, "alpha": 8, "targets": TARGETS, **KINDS[request.param]},
        run={"dir": root},
        profile={"steps": [0]},
        algorithm={"kl_coef": 0.1},
        trainer={"num_ranks": 2, "cpus_per_rank": 0.5, "timeout_s": 300},
    )
    groups = [
        make_group(
            [4, 3],
            sample=processor.sample(row("Which?", [random_image(56, 84, seed=i)], row_id=str(i))),
            advantages=[1.0, -1.0],
            seed=i,
        )
        for i in range(2)
    ]
    trainer = Trainer(config, processor.banned_token_ids)
    try:
        trainer.wait_ready()
        made = Adapted(config, base, root / "model", processor, trainer, groups)
        for _ in range(2):
            trainer.step(made.batch(), "sft", 2e-2)
        trainer.save_model(made.folder)
        processor.save(made.folder)
        yield made
    finally:
        trainer.close()


def test_only_targets_change_in_the_saved_model(adapted: Adapted) -> None:
    before = dict(model_of(adapted.base).named_parameters())
    after = dict(model_of(adapted.folder).named_parameters())
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert any(".visual." in name for name in changed)
    attention = {n for n in before if ".language_model.layers." in n and n.endswith("_proj.weight") and "self_attn" in n}  # fmt: skip  # noqa: E501
    mlp = {n for n in before if ".visual." in n and ".mlp." in n and n.endswith("weight")}
    assert adapted.config.lora
    merger = {n for n in before if ".merger.linear" in n and n.endswith("weight")}
    assert changed == attention | mlp | (merger if adapted.config.lora.dora else set())


def test_merged_model_adapter_and_trainer_agree(adapted: Adapted) -> None:
    from peft import PeftModel

    trained = adapted.logprobs()
    assert np.abs(trained - adapted.logprobs_of(model_of(adapted.base))).max() > 1e-2
    assert np.abs(trained - adapted.logprobs_of(model_of(adapted.folder))).max() < TOLERANCE
    peft_model = PeftModel.from_pretrained(adapted.start(), adapted.folder / "adapter")
    assert np.abs(trained - adapted.logprobs_of(peft_model.base_model.model)).max() < TOLERANCE


def test_the_kl_term_is_measured_with_adapters_off(adapted: Adapted) -> None:
    now, then = (
        torch.tensor(adapted.logprobs_of(model_of(folder))) for folder in (adapted.folder, adapted.base)
    )
    assert float(kl_k3(now, then).mean()) > 1e-4  # sorted, so not the very number
    metrics, _ = adapted.trainer.step(adapted.batch(), "grpo", 0.0)
    base = TreeLogprobs(adapted.start(), temperature=1.0, banned_token_ids=adapted.processor.banned_token_ids)
    [[one]] = adapted.batch(1)
    merged = TreeLogprobs(
        model_of(adapted.folder), temperature=1.0, banned_token_ids=adapted.processor.banned_token_ids
    )
    with torch.no_grad():
        batch = DeviceBatch.of(one, torch.device("cpu"))
        expected = float(kl_k3(merged(batch)[0], base(batch)[0]).mean())
    assert metrics["policy/kl_reference"] == pytest.approx(expected, rel=1e-3)


def test_a_profiled_step_has_every_phase(adapted: Adapted) -> None:
    for rank in (0, 1):
        file = adapted.config.run_dir / "profile" / f"step_000000_rank_{rank}.json"
        assert all(seconds > 0 for seconds in json.loads(file.read_text())["phases_s"].values())


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


def test_a_checkpoint_brings_back_adapters_and_optimizer(adapted: Adapted, tmp_path: Path) -> None:
    trainer = adapted.trainer
    trainer.save(tmp_path)
    saved = weights(trainer)
    trainer.step(adapted.batch(), "grpo", 1e-2)
    expected = weights(trainer)
    trainer.step(adapted.batch(), "sft", 1e-1)
    trainer.load(tmp_path)
    restored = weights(trainer)
    assert all(torch.equal(restored[name], saved[name]) for name in saved)
    trainer.step(adapted.batch(), "grpo", 1e-2)
    again = weights(trainer)
    assert all(torch.equal(again[name], expected[name]) for name in expected)
    trainer.load(tmp_path)


def test_vllm_agrees_after_an_update(adapted: Adapted) -> None:
    """It starts from the base, gets merged weights or the adapters, and then those after another step."""
    policy = VllmPolicy(adapted.config, adapted.processor)
    try:
        policy.wait_ready()
        for version in (1, 2):
            adapted.trainer.write_weights()
            policy.load_weights(adapted.trainer.manifest, version)
            groups = generate(policy, adapted)
            differences = logprob_differences(
                groups, adapted.trainer, adapted.processor.pixels, adapted.config
            )
            assert differences.largest < TOLERANCE
            if version == 1:
                assert largest_difference(model_of(adapted.base), adapted.processor, groups, 1.0) > 1e-2
            adapted.trainer.step(adapted.batch(), "sft", 1e-2)
    finally:
        policy.close()


def generate(policy: VllmPolicy, adapted: Adapted) -> Sequence[Group]:
    context = make_context(policy, adapted.processor, adapted.config)
    samples = [g.trajectories[0].sample for g in adapted.groups]
    return asyncio.run(rollout_groups(samples, context, seed_path=(0, 0))).groups
