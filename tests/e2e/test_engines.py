"""vLLM and the trainer, both real: they agree at the start and after every kind of update.

The tests share one pair of engines. Each leaves the engine with weights of its own making, so each loads
what it needs; the first ones see the engine as it started.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_context, open_tiny, random_image, row
from endpoints import data_url
from plain_model import largest_difference, model_of

from vlrl import cluster
from vlrl.algorithm.credit import assign_credit
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.config.rollout import BranchingConfig, EpisodeConfig
from vlrl.engine.policy import VllmPolicy
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.errors import DataError, EngineError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.process.network import rendezvous_port
from vlrl.rollout.episodes import sampling_of
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import Session
from vlrl.run.parity import logprob_differences
from vlrl.sft import supervised_group
from vlrl.tracking.group_numbers import num_generated_tokens
from vlrl.trainer.driver import Trainer
from vlrl.types import EnvTask, Generation, Group, Sample, Score
from vlrl.weights.group import WeightGroup
from vlrl.weights.manifest import Segment, buckets_of, checksums_of

TOLERANCE = 1e-4  # ten times stricter than what training demands of float32


@dataclass
class Engines:
    """Both engines, started from `folder`, and how to use them in one line."""

    config: Config
    folder: Path
    processor: Any
    trainer: Trainer
    policy: VllmPolicy
    samples: list[Sample]
    version: int = 0

    def generate(
        self, samples: Sequence[Sample] | None = None, *, step: int = 0, **options: Any
    ) -> list[Group]:
        """Groups of real completions."""
        chosen = self.samples if samples is None else samples
        context = make_context(self.policy, self.processor, self.config)
        return asyncio.run(rollout_groups(chosen, context, seed_path=(0, step), **options)).groups

    def pack(self, groups: Sequence[Group]) -> Batch:
        """One optimizer step's batch."""
        return pack(
            groups,
            self.processor.pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=2048,
                aggregation="token",
                max_completion_tokens=self.config.rollout.max_tokens,
                keep_zero_advantage=False,
            ),
        )

    def load(self) -> None:
        """Give the engine what the segment holds, as the next version."""
        self.version += 1
        self.policy.load_weights(self.trainer.manifest, self.version)

    def restore(self) -> None:
        """Give the engine the trainer's weights."""
        self.trainer.write_weights()
        self.load()

    def perturb(self, change: Callable[[str, torch.Tensor], None]) -> None:
        """Change the segment's weights in place and give them to the engine; the trainer keeps its own."""
        for name, tensor in Segment(self.trainer.manifest):
            change(name, tensor)
        self.load()

    def difference_to_segment(self, groups: Sequence[Group], temperature: float | None = None) -> float:
        """Largest difference to transformers' model with the segment's weights."""
        model = model_of(self.folder, self.trainer.manifest)
        return largest_difference(
            model, self.processor, groups, temperature or self.config.rollout.temperature
        )

    def parity(self, groups: Sequence[Group]) -> float:
        """Largest difference to the trainer."""
        return logprob_differences(groups, self.trainer, self.processor.pixels, self.config).largest


@pytest.fixture(scope="module")
def engines(tiny_model: Path, local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """A trainer after one step, and an engine started from the model folder which that trainer wrote."""
    rollout = {"temperature": 0.8, "group_size": 4, "max_tokens": 10}
    config = make_config(tiny_model, rollout=rollout, processor={"min_pixels": 784, "max_pixels": 168 * 168})
    processor, digits = open_tiny(tiny_model), DigitSum()
    samples = [
        *(processor.sample(digits[i]) for i in range(3)),
        processor.sample(row("Add 3 and 4.", row_id="text only")),
        processor.sample(
            row("Compare.", [random_image(40, 150, 1), random_image(170, 120, 2)], row_id="uneven")
        ),
        # A prompt of several blocks, which the prefix cache keeps.
        processor.sample(row("Which?", [random_image(168, 168, i) for i in range(5)], row_id="many")),
    ]
    trainer = Trainer(config, processor.banned_token_ids)
    try:
        trainer.wait_ready()
        supervised = [supervised_group(processor.sample(digits[i]), processor) for i in range(4)]
        batch = pack(
            supervised,
            processor.pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=2048,
                aggregation="token",
                max_completion_tokens=32,
                keep_zero_advantage=True,
            ),
        )
        trainer.step(batch, "sft", 1e-3)
        folder = tmp_path_factory.mktemp("written") / "model"
        trainer.save_model(folder)
        processor.save(folder)
        written = config.model_copy(update={"model": config.model.model_copy(update={"path": str(folder)})})
        policy = VllmPolicy(written, processor)
        try:
            policy.wait_ready()
            yield Engines(config, folder, processor, trainer, policy, samples)
        finally:
            policy.close()
    finally:
        trainer.close()


def tokens(groups: Sequence[Group]) -> list[list[int]]:
    return [t.ledgers[0].token_ids.tolist() for g in groups for t in g.trajectories]


def logprobs(groups: Sequence[Group]) -> list[list[float]]:
    return [t.ledgers[0].sampler_logprobs.tolist() for g in groups for t in g.trajectories]


def versions(groups: Sequence[Group]) -> set[int]:
    return {s.version for g in groups for t in g.trajectories for x in t.ledgers for s in x.version_spans}


# As started: the folder that Trainer.save_model and processor.save wrote.


def test_a_saved_model_loads_unchanged_in_transformers(engines: Engines, tiny_model: Path) -> None:
    saved = model_of(engines.folder)
    segment = dict(Segment(engines.trainer.manifest))
    assert dict(saved.named_parameters()).keys() == segment.keys()
    for name, parameter in saved.named_parameters():
        assert torch.equal(parameter.data, segment[name]), name
    changed = [n for n, p in model_of(tiny_model).named_parameters() if not torch.equal(p.data, segment[n])]
    assert any("visual" in n for n in changed)  # so it is not just the folder training started from
    assert any("embed_tokens" in n for n in changed)


def test_a_saved_model_loads_unchanged_in_vllm(engines: Engines) -> None:
    """The engine generates from what it read from the folder, before any weight was sent."""
    groups = engines.generate()
    assert versions(groups) == {0}
    assert engines.parity(groups) < TOLERANCE
    assert largest_difference(model_of(engines.folder), engines.processor, groups, 0.8) < TOLERANCE


def test_greedy_tokens_are_transformers_likeliest(engines: Engines) -> None:
    groups = engines.generate(greedy=True, group_size=1)
    model = model_of(engines.folder)
    for group in groups:
        [trajectory] = group.trajectories
        ids = torch.tensor(trajectory.ledgers[0].token_ids)[None]
        inputs: dict[str, Any] = {"mm_token_type_ids": (ids == model.config.image_token_id).int()}
        if trajectory.media:
            inputs |= {k: torch.tensor(v) for k, v in engines.processor.pixels(trajectory.media).items()}
        with torch.no_grad():
            logits = model(input_ids=ids, **inputs).logits[0, :-1]
        logits[:, list(engines.processor.banned_token_ids)] = -torch.inf
        generated = torch.tensor(trajectory.ledgers[0].loss_mask[1:])
        assert logits.argmax(-1)[generated].tolist() == ids[0, 1:][generated].tolist()


# Updates.


def test_parity_holds_after_updates_and_the_version_is_stamped(engines: Engines) -> None:
    """Law 5 and law 6 over two real GRPO steps: any part left stale (tower, tied head, caches) shows here."""
    engines.restore()
    before = engines.generate(step=1)
    for _ in range(2):
        groups = engines.generate(step=1)
        assert versions(groups) == {engines.version}
        assert engines.parity(groups) < TOLERANCE
        for group in groups:
            for trajectory in group.trajectories:
                trajectory.score = Score(float(trajectory.ledgers[0].token_ids[-1] % 7), {})
        assign_credit(groups, engines.config.algorithm)
        metrics, differences = engines.trainer.step(engines.pack(groups), "grpo", 5e-3)
        assert differences.num_tokens
        assert differences.largest < TOLERANCE  # what every training step checks
        assert metrics["policy/clip_fraction"] == 0.0
        assert metrics["optim/grad_norm"] > 0.0
        engines.restore()
    after = engines.generate(step=1)
    assert engines.parity(after) < TOLERANCE
    assert engines.difference_to_segment(after) < TOLERANCE
    assert logprobs(after) != logprobs(before)


def is_vision(name: str) -> bool:
    return ".visual." in name


def test_a_vision_only_update_changes_the_answer_on_a_cached_image(engines: Engines) -> None:
    """Law 6: encoder, prefix and multimodal caches must all forget what the old tower saw."""
    engines.restore()
    with_images = [s for s in engines.samples if s.media]
    text = [s for s in engines.samples if not s.media]
    generator = torch.Generator().manual_seed(0)

    def shake(name: str, tensor: torch.Tensor) -> None:
        if is_vision(name):
            tensor.add_(0.2 * torch.randn(tensor.shape, generator=generator))

    options = {"greedy": True, "group_size": 1}
    before, text_before = engines.generate(with_images, **options), engines.generate(text, **options)
    engines.perturb(shake)
    after, text_after = engines.generate(with_images, **options), engines.generate(text, **options)
    assert engines.difference_to_segment(after, temperature=1.0) < TOLERANCE
    for old, new in zip(before, after, strict=True):
        [a], [b] = old.trajectories, new.trajectories
        start = a.turns[0].action[0]
        assert abs(float(a.ledgers[0].sampler_logprobs[start] - b.ledgers[0].sampler_logprobs[start])) > 1e-2
    assert tokens(text_before) == tokens(text_after)  # nothing but the tower has changed
    assert np.allclose(np.concatenate(logprobs(text_before)), np.concatenate(logprobs(text_after)), atol=1e-5)


def test_a_tied_head_is_fresh_after_an_update(engines: Engines) -> None:
    """Only the shared embedding changes; a stale head would go on predicting with the old one."""
    engines.restore()
    assert not [n for n, _ in Segment(engines.trainer.manifest) if "lm_head" in n]
    generator = torch.Generator().manual_seed(1)

    def shake(name: str, tensor: torch.Tensor) -> None:
        if "embed_tokens" in name:
            tensor.add_(0.05 * torch.randn(tensor.shape, generator=generator))

    before = engines.generate()
    engines.perturb(shake)
    after = engines.generate()
    assert logprobs(before) != logprobs(after)
    assert engines.difference_to_segment(after) < TOLERANCE


def test_an_update_that_goes_back_gives_the_first_answers_again(engines: Engines) -> None:
    engines.restore()
    first = engines.generate()
    engines.perturb(lambda name, tensor: tensor.mul_(1.1))
    between = engines.generate()
    engines.restore()
    again = engines.generate()
    assert logprobs(between) != logprobs(first)
    assert tokens(again) == tokens(first)
    assert logprobs(again) == logprobs(first)


@pytest.mark.parametrize("transport", ["disk", "broadcast"])
def test_weights_come_by_every_transport(engines: Engines, transport: Any, tmp_path: Path) -> None:
    """The trainer's ZeRO-3 parameters go, gathered in several buckets, into an engine that was far off."""
    engines.perturb(lambda name, tensor: tensor.mul_(1.1))
    place = str(tmp_path / "version") if transport == "disk" else f"127.0.0.1:{rendezvous_port(None)}"
    manifest = replace(
        engines.trainer.manifest,
        path=place,
        transport=transport,
        bucket_bytes=2**18,
        num_members=2,
        timeout_s=60.0,
        checked=True,
    )
    assert len(buckets_of(manifest)) > 3
    for _ in range(2):  # the group of a broadcast is met once and kept
        sending = cluster.begin(engines.trainer._ranks, "write_weights", [manifest])
        if transport == "disk":
            cluster.fetch_all(sending)
        engines.version += 1
        engines.policy.load_weights(manifest, engines.version)
        cluster.fetch_all(sending)
    groups = engines.generate()
    assert versions(groups) == {engines.version}
    assert engines.parity(groups) < TOLERANCE


def test_a_broadcast_that_came_otherwise_than_it_was_sent_is_named(engines: Engines) -> None:
    """Every byte is compared, one parameter's checksum is another: here the test is the trainer's rank 0."""
    engines.restore()
    manifest = replace(
        engines.trainer.manifest,
        path=f"127.0.0.1:{rendezvous_port(None)}",
        transport="broadcast",
        bucket_bytes=2**30,
        num_members=2,
        timeout_s=60.0,
        checked=True,
    )
    tensors = dict(Segment(engines.trainer.manifest))
    sent = [checksum.crc32 for checksum in checksums_of(tensors.items())]
    sent[3] ^= 1

    def broadcast() -> None:
        group = WeightGroup(manifest.path, 0, 2, torch.device("cpu"), 60.0)
        [bucket] = buckets_of(manifest)
        buffer = torch.empty(bucket.num_bytes, dtype=torch.uint8)
        for name, target in bucket.views(buffer):
            target.copy_(tensors[name])
        group.broadcast(buffer)
        group.broadcast(torch.tensor(sent))

    sender = threading.Thread(target=broadcast)
    sender.start()
    damaged = manifest.entries[3].name
    with pytest.raises(EngineError, match=rf"{re.escape(damaged)}: 1 of \d+ parameters are not what the tr"):
        engines.policy.load_weights(manifest, engines.version + 1)
    sender.join()
    engines.version += 1
    engines.policy.load_weights(engines.trainer.manifest, engines.version)


def test_a_damaged_version_is_refused_and_the_engine_keeps_its_own(engines: Engines) -> None:
    engines.restore()
    segment = Segment(engines.trainer.manifest)
    manifest = replace(engines.trainer.manifest, checksums=tuple(checksums_of(segment.flat.items())))
    damaged = next(flat for name, flat in segment.flat.items() if "embed_tokens" in name)
    good = float(damaged[1000])
    damaged[1000] = good + 0.5
    with pytest.raises(EngineError, match=r"embed_tokens.*not what the trainer sent by shared_memory"):
        engines.policy.load_weights(manifest, engines.version + 1)
    groups = engines.generate()
    assert versions(groups) == {engines.version}
    assert engines.parity(groups) < TOLERANCE
    damaged[1000] = good
    engines.version += 1
    engines.policy.load_weights(manifest, engines.version)
    assert engines.parity(engines.generate()) < TOLERANCE


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("layers.1.input_layernorm.weight", r"layers\.1\.input_layernorm\.weight: not loaded by the engine"),
        ("visual.merger.ln_q.weight", r"visual\.merger\.ln_q\.weight: not loaded by the engine"),
        ("layers.0.self_attn.k_proj.weight", r"layers\.0\.self_attn\.k_proj\.weight: not sent by the tr"),
    ],
)
def test_a_version_that_lacks_a_parameter_is_refused_by_its_name(
    engines: Engines, missing: str, words: str
) -> None:
    """The engine would go on with that of an earlier version, or with memory that nothing was written to."""
    engines.restore()
    whole = engines.trainer.manifest
    entries = tuple(e for e in whole.entries if not e.name.endswith(missing))
    assert len(entries) == len(whole.entries) - 1
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # an engine keeps a segment it has opened
        os.link(whole.path, f"{folder}/segment")
        lacking = replace(whole, path=f"{folder}/segment", entries=entries)
        with pytest.raises(EngineError, match=words):
            engines.policy.load_weights(lacking, engines.version + 1)
    engines.load()
    assert engines.parity(engines.generate()) < TOLERANCE


def test_a_version_that_was_loaded_is_the_engines_own(engines: Engines) -> None:
    """The trainer may write over the segment as soon as the load is done."""
    engines.restore()
    engines.trainer.write_weights()
    segment = dict(Segment(engines.trainer.manifest))
    first = engines.generate()
    for tensor in segment.values():
        tensor.mul_(2.0)
    assert logprobs(engines.generate()) == logprobs(first)


def test_a_load_that_hangs_ends_in_an_error_that_says_so(engines: Engines, tmp_path: Path) -> None:
    """Nobody sends: the member of the group gives up within its time, and the engine goes on."""
    engines.restore()
    address = f"127.0.0.1:{rendezvous_port(None)}"
    manifest = replace(
        engines.trainer.manifest, path=address, transport="broadcast", bucket_bytes=2**18, num_members=2
    )
    with pytest.raises(EngineError, match=r"transport=broadcast: member 1 of 2 .*did not meet the others"):
        engines.policy.load_weights(replace(manifest, timeout_s=1.0), engines.version + 1)
    assert versions(engines.generate()) == {engines.version}


# Law 3.


def test_media_tokens_are_never_generated_even_when_they_are_the_likeliest(engines: Engines) -> None:
    """Two of them get huge opposite embeddings in the tied head: one is the likeliest at every position."""
    engines.restore()
    pad, video = engines.processor.banned_token_ids[-2:]
    direction = 50.0 * torch.randn(128, generator=torch.Generator().manual_seed(2))

    def favour(name: str, tensor: torch.Tensor) -> None:
        if "embed_tokens" in name:
            tensor[pad], tensor[video] = direction, -direction

    engines.perturb(favour)
    model = model_of(engines.folder, engines.trainer.manifest)
    ids = torch.tensor(engines.samples[3].prompt.token_ids)[None]
    with torch.no_grad():
        assert int(model(input_ids=ids).logits[0, -1].argmax()) in (pad, video)  # the trap is set
    sampled, greedy = engines.generate(), engines.generate(greedy=True, group_size=1)
    for trajectory in [t for g in (*sampled, *greedy) for t in g.trajectories]:
        generated = trajectory.ledgers[0].token_ids[trajectory.ledgers[0].loss_mask]
        assert not np.isin(generated, engines.processor.banned_token_ids).any()
        assert np.isfinite(trajectory.ledgers[0].sampler_logprobs).all()
    assert engines.difference_to_segment(sampled) < TOLERANCE


@pytest.mark.parametrize("tamper", ["longer", "other"])
def test_ids_that_the_engine_expands_otherwise_stop_the_run(engines: Engines, tamper: str) -> None:
    good = engines.samples[0]
    ids = good.prompt.token_ids
    if tamper == "longer":
        changed = np.insert(ids, 5, ids[5])
    else:
        changed = ids.copy()
        changed[1] += 1
    positions = np.tile(np.arange(len(changed)), (3, 1))
    prompt = replace(good.prompt, token_ids=changed, position_ids=positions)
    bad = replace(good, id="tampered/7", prompt=prompt)
    with pytest.raises(EngineError, match=r"'tampered/7'.*law 3"):
        engines.generate([*engines.samples, bad, good])
    assert len(engines.generate([good])[0].trajectories) == 4  # nothing of the failed wave is left behind


def test_a_prompt_that_does_not_fit_is_refused_with_its_numbers(engines: Engines) -> None:
    long = engines.processor.sample(row("word " * 600, row_id="long one"))
    with pytest.raises(DataError, match=r"'long one' needs \d+ tokens.*max_model_len=512"):
        engines.generate([long])


# Law 8.


def test_the_same_requests_give_the_same_tokens_and_logprobs(engines: Engines) -> None:
    engines.restore()
    first = engines.generate(step=5)
    engines.load()  # as a new run or the next step would find it: nothing cached
    second = engines.generate(step=5)
    assert tokens(first) == tokens(second)
    assert logprobs(first) == logprobs(second)


def test_a_warm_cache_changes_no_token(engines: Engines) -> None:
    engines.restore()
    cold, warm = engines.generate(step=6), engines.generate(step=6)
    assert tokens(cold) == tokens(warm)
    assert np.allclose(np.concatenate(logprobs(cold)), np.concatenate(logprobs(warm)), atol=1e-5)


def test_members_of_a_group_and_steps_differ(engines: Engines) -> None:
    engines.restore()
    one, other = engines.generate(step=7), engines.generate(step=8)
    for group in one:
        assert len({tuple(t.ledgers[0].token_ids) for t in group.trajectories}) == len(group.trajectories)
    assert tokens(one) != tokens(other)


def test_a_completion_ends_with_a_stop_token_or_is_truncated(engines: Engines) -> None:
    """Both endings occur with stop tokens made likely; the stop token itself is part of the ledger."""
    engines.restore()
    end, text_end = engines.processor.stop_token_ids
    direction = 0.3 * torch.randn(128, generator=torch.Generator().manual_seed(3))

    def favour(name: str, tensor: torch.Tensor) -> None:
        if "embed_tokens" in name:
            tensor[end], tensor[text_end] = direction, -direction

    engines.perturb(favour)
    generated = [t for g in engines.generate(step=9) for t in g.trajectories]
    assert {t.outcome for t in generated} == {"ok", "truncated"}
    for trajectory in generated:
        action = trajectory.ledgers[0].token_ids[trajectory.ledgers[0].loss_mask]
        stops = np.isin(action, engines.processor.stop_token_ids)
        assert stops[-1] == (trajectory.outcome == "ok")
        assert not stops[:-1].any()
        assert len(action) == 10 or trajectory.outcome == "ok"


# What is generated at everybody's own pace.


def test_who_gives_up_leaves_the_others_of_a_wave(engines: Engines) -> None:
    """An episode over its time, or cut off: its request is generated with the others, for nobody."""

    async def main() -> list[Any]:
        sampling = sampling_of(engines.config.rollout, 0)
        asking = [
            asyncio.create_task(engines.policy.generate(Session(sample, 0), sampling))
            for sample in engines.samples[:3]
        ]
        await asyncio.sleep(0)
        asking[0].cancel()
        return await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 60)

    gone, *others = asyncio.run(main())
    assert isinstance(gone, asyncio.CancelledError)
    assert all(isinstance(other, Generation) for other in others)


def test_what_agents_are_answered_is_what_the_trainer_computes(engines: Engines) -> None:
    """Law 1 through OpenAI's own client: images in every turn, the history sent again each time."""
    engines.restore()
    task = {"images": [data_url(i, 56 + 28 * i, 84) for i in range(3)]}
    agent = {"agent": f"{Path(__file__).parents[1] / 'helpers' / 'agents.py'}:looks"}
    samples = [
        replace(engines.samples[0], id=f"agent {i}", env=EnvTask("agent", agent, task)) for i in range(2)
    ]
    config = engines.config.model_copy(update={"episodes": EpisodeConfig(lockstep=False)})

    async def main() -> list[Group]:
        context = make_context(engines.policy, engines.processor, config)
        try:
            return (await rollout_groups(samples, context, seed_path=(0, 0))).groups
        finally:
            await context.endpoint.close()

    groups = asyncio.run(main())
    trajectories = [t for group in groups for t in group.trajectories]
    assert [len(t.turns) for t in trajectories] == [3] * 8
    assert all(len(t.ledgers) == 1 and len(t.media) == 3 for t in trajectories)
    assert len({tuple(t.action_ids) for t in trajectories}) == 8
    assert engines.parity(groups) < TOLERANCE


def test_what_branches_generate_is_what_the_trainer_computes(engines: Engines) -> None:
    """The ledger goes on behind a snapshot, images included; what is shared is generated and trained once."""
    engines.restore()
    lake = EnvTask("visual/frozen_lake", {"image_size": 112}, {}, seed=3)
    episodes = EpisodeConfig(max_turns=4, branching=BranchingConfig(num_branches=2, at=2))
    config = engines.config.model_copy(update={"episodes": episodes})

    async def main() -> list[Group]:
        context = make_context(engines.policy, engines.processor, config)
        samples = [replace(engines.samples[0], env=lake)]
        with context.host:
            return (
                await rollout_groups(samples, context, seed_path=(0, 0), branching=episodes.branching)
            ).groups

    groups = asyncio.run(main())
    trajectories = groups[0].trajectories
    assert [(t.trunk, t.num_shared, len(t.turns), len(t.ledgers[0].media)) for t in trajectories] == [
        (0, 2, 4, 4), (0, 2, 4, 4), (2, 2, 4, 4), (2, 2, 4, 4),
    ]  # fmt: skip
    assert len({tuple(t.action_ids) for t in trajectories}) == 4
    assert engines.parity(groups) < TOLERANCE
    for trajectory in trajectories:
        trajectory.score = Score(float(trajectory.group_index), {})
    assign_credit(groups, config.algorithm)
    num_trained = sum(len(micro.target_ids) for rank in engines.pack(groups) for micro in rank)
    assert (
        num_trained == sum(map(num_generated_tokens, groups)) < sum(t.num_action_tokens for t in trajectories)
    )
