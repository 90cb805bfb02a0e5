"""Every family through the real engines: vLLM and a ZeRO-3 rank agree, before an update and after one.

All but the mixture of experts, whose weights are repacked, are marked slow: Qwen2.5-VL is the family of all
other engine tests (tests/e2e), and the base class of the families is the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, make_context, observe, random_image
from plain_model import largest_difference, model_of
from sounds import audio_part, noise

from vlrl.algorithm.credit import group_with_advantages
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.engine.policy import VllmPolicy
from vlrl.model.lora import persistent_buffers
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import Session
from vlrl.run.parity import logprob_differences
from vlrl.sft import supervised_group
from vlrl.trainer.driver import Trainer
from vlrl.types import Group, Sample, Sampling, Score
from vlrl.weights.manifest import Segment

TOLERANCE = 1e-4  # nats; measured: below 1e-5 for each
SLOW = (
    "qwen3_5",
    "qwen3_5_moe",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen2_5_omni",
    "qwen3_vl",
    "internvl",
    "internvl3_5",
    "internvl3_5_moe",
    "llava_onevision",
    "llava_next",
    "smolvlm",
    "idefics3",
    "minicpmv4_6",
    "mistral3",
    "glm4v",
    "glm4v_moe",
    "gemma4",
)
# LLaVA's features are taken before the tower's last norm, LLaVA-NeXT's before the last layer too. An audio
# tower is frozen.
UNUSED = {
    "llava_onevision": ("post_layernorm",),
    "llava_next": ("post_layernorm", "vision_tower.encoder.layers.1."),
    "gemma4": ("audio_tower", "embed_audio"),
    "qwen2_5_omni": ("audio_tower",),
}
FAMILIES = [
    "qwen3_vl_moe",
    *(pytest.param(name, marks=pytest.mark.slow(together=name)) for name in SLOW),
]


def part_of(content: Any) -> dict[str, Any]:
    """A string is text, an array an image, a list of them a video, a dictionary a part."""
    if isinstance(content, dict):
        return content
    kind = "text" if isinstance(content, str) else "video" if isinstance(content, list) else "image"
    return {"type": kind, kind: content}


@dataclass
class Engines:
    """A trainer after one step, and an engine started from the model folder which that trainer wrote."""

    config: Config
    folder: Path
    processor: Any
    trainer: Trainer
    policy: VllmPolicy
    version: int = 0

    def sample(self, parts: Sequence[Any], row_id: str, target: str | None = None) -> Sample:
        content = [part_of(p) for p in parts]
        row = {"id": row_id, "messages": [{"role": "user", "content": content}], "target": target}
        sample: Sample = self.processor.sample(row)
        return sample

    def samples(self) -> list[Sample]:
        """No image, one, several in the middle of text and the same ones swapped; videos and sounds too."""
        a, b = random_image(70, 150, 1), random_image(120, 64, 2)
        heard = [audio_part(noise(0.5, 1)), audio_part(noise(1.2, 2))] if self.processor.hears else []
        return [
            *([self.sample([heard[0], "left ", a, heard[1], "?"], "heard")] if heard else []),
            self.sample(["Add 3 and 4."], "none"),
            self.sample([a, "Which?"], "one"),
            self.sample(["left ", a, " right ", b, "?"], "two"),
            self.sample(["left ", b, " right ", a, "?"], "swapped"),
            *(self.videos() if self.processor.takes_video else ()),
        ]

    def videos(self) -> list[Sample]:
        """One alone, a shorter one behind an image, and that one backwards."""
        short, long = ([random_image(60, 90, seed) for seed in range(n)] for n in (2, 4))
        image = random_image(120, 64, 2)
        return [
            self.sample([long, "What?"], "video"),
            self.sample([image, "and", short, "?"], "image and video"),
            self.sample([image, "and", short[::-1], "?"], "backwards"),
        ]

    def generate(self, samples: Sequence[Sample], **options: Any) -> list[Group]:
        """Groups of real completions; the engine's prompt ids are checked against the processor's (law 3)."""
        context = make_context(self.policy, self.processor, self.config)
        return asyncio.run(rollout_groups(samples, context, seed_path=(0, 0), **options)).groups

    def pack(self, groups: Sequence[Group]) -> Batch:
        """One optimizer step's batch."""
        return pack(
            groups,
            self.processor.pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=2048,
                aggregation="token",
                max_completion_tokens=32,
                keep_zero_advantage=True,
            ),
        )

    def train(self) -> None:
        """One optimizer step, large enough to matter."""
        samples = [self.sample([random_image(64, 64, i), "?"], str(i), target=f"{i}") for i in range(3)]
        self.trainer.step(self.pack([supervised_group(s, self.processor) for s in samples]), "sft", 1e-2)
        self.trainer.write_weights()

    def update(self) -> None:
        """Give the engine the trainer's weights as the next version."""
        self.version += 1
        self.policy.load_weights(self.trainer.manifest, self.version)

    def parity(self, groups: Sequence[Group]) -> float:
        """Largest difference between sampler and trainer, in nats."""
        return logprob_differences(groups, self.trainer, self.processor.pixels, self.config).largest


@pytest.fixture(scope="module", params=FAMILIES)
def engines(
    request: pytest.FixtureRequest,
    tiny_family: Callable[[str], Path],
    local_ray: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp(f"trained-{request.param}") / "model"
    config = family_config(
        tiny_family(request.param), rollout={"group_size": 3, "max_tokens": 8}, algorithm={"kl_coef": 0.1}
    )
    processor = open_processor(config)
    trainer = Trainer(config, processor.banned_token_ids)
    try:
        trainer.wait_ready()
        written = config.model_copy(update={"model": config.model.model_copy(update={"path": str(folder)})})
        engines = Engines(config, folder, processor, trainer, policy=None)  # type: ignore[arg-type]
        engines.train()
        trainer.save_model(folder)
        processor.save(folder)
        engines.policy = VllmPolicy(written, processor)
        try:
            engines.policy.wait_ready()
            yield engines
        finally:
            engines.policy.close()
    finally:
        trainer.close()


def test_a_step_changes_every_weight_of_the_model(
    engines: Engines, tiny_family: Callable[[str], Path]
) -> None:
    """The tower and the projector are trained too; nothing is left out of the optimizer's gradients."""
    before = dict(model_of(Path(engines.config.model.path)).named_parameters())
    after = dict(model_of(engines.folder).named_parameters())
    family = Path(engines.config.model.path).name
    unused = {name for name in before if any(part in name for part in UNUSED.get(family, ()))}
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == unused


def test_a_step_leaves_buffers_as_they_were(engines: Engines) -> None:
    """A router's correction too: nothing in transformers follows the experts' load."""
    before, after = (
        dict(model_of(folder).named_buffers()) for folder in (Path(engines.config.model.path), engines.folder)
    )
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def first_tokens(groups: Sequence[Group]) -> list[tuple[int, float]]:
    """The first token generated for each prompt, and its logprob."""
    firsts = [(t, int(np.flatnonzero(t.ledgers[0].loss_mask)[0])) for g in groups for t in g.trajectories[:1]]
    return [(int(t.ledgers[0].token_ids[i]), float(t.ledgers[0].sampler_logprobs[i])) for t, i in firsts]


def test_a_saved_model_is_the_same_to_both_engines(engines: Engines) -> None:
    """vLLM reads the folder that the trainer wrote before any update. transformers reads it back too."""
    groups = engines.generate(engines.samples())
    assert engines.parity(groups) < TOLERANCE
    assert largest_difference(model_of(engines.folder), engines.processor, groups, 1.0) < TOLERANCE
    generated = np.concatenate(
        [t.ledgers[0].token_ids[t.ledgers[0].loss_mask] for g in groups for t in g.trajectories]
    )
    assert not np.isin(generated, engines.processor.banned_token_ids).any()


def test_swapping_two_images_changes_what_both_compute(engines: Engines) -> None:
    """Random weights see little, so the images are as unlike as can be, and rounding is the measure."""
    dark, bright = np.zeros((70, 150, 3), np.uint8), np.full((120, 64, 3), 255, np.uint8)
    pairs = {"two": (dark, bright), "swapped": (bright, dark)}
    samples = [engines.sample(["left ", a, " right ", b, "?"], name) for name, (a, b) in pairs.items()]
    groups = engines.generate(samples, greedy=True, group_size=1)
    [(token, logprob), (other_token, other_logprob)] = first_tokens(groups)
    disagreement = engines.parity(groups)
    assert disagreement < TOLERANCE
    assert token != other_token or abs(logprob - other_logprob) > 10 * disagreement


@pytest.mark.parametrize("policy", ["full", "last_images"])
def test_an_image_that_comes_in_a_later_turn_is_seen_by_both(engines: Engines, policy: str) -> None:
    """And what was generated under a window is trained under it."""
    a, b = random_image(70, 150, 1), random_image(120, 64, 2)
    groups = []
    for later in (b, a):
        session = Session(engines.sample([a, "Which?"], "turns"), 0)
        for seed, seen in enumerate((later, None)):
            sampling = Sampling(temperature=1.0, max_tokens=5, seed=seed)
            engines.processor.act(session, asyncio.run(engines.policy.generate(session, sampling)))
            if seen is not None:
                observe(engines.processor, session, "And this?", [seen], policy=policy)
        groups.append(Group([session.trajectory("", "ok", 0.0)]))
    assert engines.parity(groups) < TOLERANCE
    first, second = (g.trajectories[0] for g in groups)
    [start, other_start] = (t.turns[1].action[0] for t in (first, second))
    [ledger, other] = (t.ledgers[-1] for t in (first, second))
    assert ledger.token_ids[start] != other.token_ids[other_start] or (
        abs(ledger.sampler_logprobs[start] - other.sampler_logprobs[other_start]) > 1e-3
    )


def test_after_an_update_both_agree_again(engines: Engines) -> None:
    samples = engines.samples()
    before = engines.generate(samples, greedy=True, group_size=1)
    engines.train()
    engines.update()
    groups = [*engines.generate(samples), *engines.generate(samples, greedy=True, group_size=1)]
    assert engines.parity(groups) < TOLERANCE
    assert {
        s.version for g in groups for t in g.trajectories for x in t.ledgers for s in x.version_spans
    } == {engines.version}
    changes = zip(first_tokens(before), first_tokens(groups[len(samples) :]), strict=True)
    assert all(old[0] != new[0] or abs(old[1] - new[1]) > 1e-3 for old, new in changes)


def test_an_engine_computes_with_each_tensor_that_it_is_sent(engines: Engines) -> None:
    """Buffers too: values that no training made, and that the engine's own folder does not have."""
    engines.trainer.write_weights()
    manifest = replace(engines.trainer.manifest, checked=False, checksums=())
    model, generator = model_of(engines.folder), torch.Generator().manual_seed(0)
    buffers = dict(persistent_buffers(model))
    for _, tensor in (segment := Segment(manifest)):
        tensor += torch.randn(tensor.shape, generator=generator) / 50
    assert not model.load_state_dict(dict(segment), strict=False).unexpected_keys
    engines.version += 1
    engines.policy.load_weights(manifest, engines.version)
    groups = engines.generate(engines.samples())
    assert largest_difference(model, engines.processor, groups, 1.0) < TOLERANCE
    for buffer in buffers.values():
        buffer.zero_()
        assert largest_difference(model, engines.processor, groups, 1.0) > 10 * TOLERANCE


def test_a_grpo_step_is_measured_against_the_starting_model(engines: Engines) -> None:
    """Ratios start at one; the reference model, which some families' code forgets, is there."""
    engines.trainer.write_weights()
    engines.update()
    groups = engines.generate(engines.samples())
    for group in groups:
        for index, trajectory in enumerate(group.trajectories):
            trajectory.score = Score(float(index), {})
        group.credits = group_with_advantages(
            group.trajectories, np.arange(len(group.trajectories)) - 1.0
        ).credits
    metrics, differences = engines.trainer.step(engines.pack(groups), "grpo", 1e-3)
    assert differences.num_tokens
    assert differences.largest < TOLERANCE
    assert metrics["policy/clip_fraction"] == 0
    assert metrics["policy/kl_reference"] > 1e-3  # a step away from where it started
    assert metrics["optim/grad_norm"] > 0
