"""Weights that change in the middle of requests: every token is its own version's, exactly.

The engine runs in continuous mode. A hold stops it at a known token until the update comes, so that the tests
mean the same on any machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_context, open_tiny, random_image, row
from plain_model import model_of
from versions import Hold, shaken_segments

from vlrl import cluster
from vlrl.algorithm.credit import group_with_advantages
from vlrl.config import Config
from vlrl.engine.client.admission import AdmissionQueue
from vlrl.engine.policy import VllmPolicy
from vlrl.errors import EngineError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import Session
from vlrl.types import EnvTask, Generation, Group, Sample, Sampling, Score
from vlrl.weights.manifest import Manifest

TOLERANCE = 2e-5
TEMPERATURE = 0.8
NUM_VERSIONS = 3


@dataclass
class Engines:
    """A continuous engine and the weights it can be given."""

    config: Config
    folder: Path
    processor: Any
    policy: VllmPolicy
    manifests: list[Manifest]

    @property
    def actor(self) -> Any:
        """The engine's process."""
        return self.policy._replicas[0].actor

    def load(self, version: int) -> None:
        """Give the engine a version; nothing it knew is left."""
        self.policy.load_weights(self.manifests[version], version)

    async def update_when_held(self, hold: Hold, versions: Sequence[int]) -> None:
        """Each version as soon as the engine stands still for it."""
        for number, version in enumerate(versions, 1):
            while await self.actor.__ray_call__.remote(lambda actor: actor.hold.reached) < number:
                await asyncio.sleep(0.01)
            assert await self.policy.update(self.manifests[version], version) > 0

    def install(self, hold: Hold) -> None:
        """Put a hold into the engine."""
        cluster.fetch(self.actor.__ray_call__.remote(lambda actor: hold.install(actor)))

    def sample(self, text: str, *sizes: int) -> Sample:
        """A question about images of these sizes."""
        images = [random_image(size, size, seed) for seed, size in enumerate(sizes)]
        return self.processor.sample(row(text, images, row_id=text))


@pytest.fixture(scope="module")
def engines(tiny_model: Path, local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    config = make_config(
        tiny_model,
        rollout={"temperature": TEMPERATURE, "group_size": 3, "max_tokens": 24},
        generator={"mode": "continuous"},
        episodes={"lockstep": False, "max_turns": 3},
        processor={"min_pixels": 784, "max_pixels": 168 * 168},
    )
    processor = open_tiny(tiny_model)
    policy = VllmPolicy(config, processor)
    try:
        segments = shaken_segments(tiny_model, tmp_path_factory.mktemp("segments"), NUM_VERSIONS)
        policy.wait_ready()
        yield Engines(config, tiny_model, processor, policy, segments)
    finally:
        policy.close()


def sampling(max_tokens: int, *, seed: int = 0, greedy: bool = False) -> Sampling:
    return Sampling(0.0 if greedy else TEMPERATURE, max_tokens, seed)


def spans(generation: Generation) -> list[tuple[int, int, int]]:
    return [(s.version, s.start, s.end) for s in generation.version_spans]


def differences(engines: Engines, groups: Sequence[Group]) -> dict[int, float]:
    """Largest |trainer's model with a version's weights - recorded| over the version's own tokens."""

    def packed(of_ledger: Any) -> list[Any]:
        graded_groups = []
        for group in groups:
            members = [
                replace(t, score=Score(0.0, {}), ledgers=tuple(of_ledger(x) for x in t.ledgers))
                for t in group.trajectories
            ]
            graded_groups.append(group_with_advantages(members, [1.0] * len(members)))
        [micro_batches] = pack(
            graded_groups,
            engines.processor.pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=4096,
                aggregation="token",
                max_completion_tokens=24,
                keep_zero_advantage=True,
            ),
        )
        return micro_batches

    def with_versions(ledger: Any) -> Any:
        """The versions in place of the logprobs, so that the packer brings them into the trainer's order."""
        versions = np.full(len(ledger.token_ids), -1, dtype=np.float32)
        for span in ledger.version_spans:
            versions[span.start : span.end] = span.version
        assert ((versions >= 0) == ledger.loss_mask).all()  # every generated token has one, no other has
        return replace(ledger, sampler_logprobs=versions)

    found: dict[int, float] = {}
    micro_batches, of_versions = packed(lambda ledger: ledger), packed(with_versions)
    banned = engines.processor.banned_token_ids
    for version, manifest in enumerate(engines.manifests):
        model = TreeLogprobs(
            model_of(engines.folder, manifest), temperature=TEMPERATURE, banned_token_ids=banned
        )
        for micro_batch, of_version in zip(micro_batches, of_versions, strict=True):
            with torch.no_grad():
                logprobs, _ = model(DeviceBatch.of(micro_batch, torch.device("cpu")))
            error = np.abs(logprobs.numpy() - micro_batch.sampler_logprobs)
            own = of_version.sampler_logprobs == version
            if own.any():
                found[version] = max(found.get(version, 0.0), float(error[own].max()))
                assert error[~own].max() > 100 * TOLERANCE  # another version's weights would be noticed
    return found


def test_updates_in_the_middle_of_a_turn_are_exact(engines: Engines) -> None:
    """Episodes with a new image each turn; two updates while requests of the second turn run."""
    engines.load(0)
    lake = EnvTask("visual/frozen_lake", {"image_size": 112}, {}, seed=3)
    samples = [replace(engines.sample(f"Lake {i}.", 56), env=lake) for i in range(2)]
    first_prompt = 0

    async def main() -> list[Group]:
        nonlocal first_prompt
        context = make_context(engines.policy, engines.processor, engines.config)
        with context.host:
            trial = await rollout_groups(samples[:1], context, seed_path=(0, 9), group_size=2)
            first_prompt = trial.groups[0].trajectories[0].turns[0].context[1]
            hold = Hold(8, 16, after_prompt=first_prompt, until_update=True)
            engines.install(hold)
            playing = asyncio.create_task(rollout_groups(samples, context, seed_path=(0, 0)))
            await engines.update_when_held(hold, [1, 2])
            return (await playing).groups

    groups = asyncio.run(main())
    trajectories = [t for g in groups for t in g.trajectories]
    assert {len(t.turns) for t in trajectories} == {3}
    assert all(len(t.ledgers) == 1 and len(t.ledgers[0].media) == 3 for t in trajectories)
    lived_through_both = [
        t
        for t in trajectories
        for turn in t.turns
        if {s.version for s in t.ledgers[0].version_spans if turn.action[0] <= s.start < turn.action[1]}
        == {0, 1, 2}
    ]
    assert lived_through_both
    found = differences(engines, groups)
    assert found.keys() == {0, 1, 2}
    assert max(found.values()) < TOLERANCE, found


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_a_cold_engine_generates_the_same_from_where_each_version_began(
    engines: Engines, known: bool
) -> None:
    """The engine against itself, greedily: a request that lived through two updates, then its parts, cold.

    A request whose images the engine knows from another is not given them again, and needs them after all.
    """
    engines.load(0)
    hold = Hold(7, 16)
    sample = engines.sample("What do you see? " * 12, 168, 56)

    async def generate(num_tokens: int, before: Generation | None = None, start: int = 0) -> Generation:
        session = Session(sample, 0)
        if before is not None and start:
            ids, logprobs = before.token_ids[:start], before.sampler_logprobs[:start]
            session.append_action(Generation(ids, logprobs, (), finished=False))
        return await engines.policy.generate(session, sampling(num_tokens, greedy=True))

    async def main() -> Generation:
        if known:
            await generate(1)
        engines.install(hold)
        generating = asyncio.create_task(generate(24))
        await engines.update_when_held(hold, [1, 2])
        return await generating

    whole = asyncio.run(main())
    assert spans(whole) == [(0, 0, 7), (1, 7, 16), (2, 16, 24)]
    for version, start, end in spans(whole):
        engines.load(version)
        part = asyncio.run(generate(end - start, whole, start))
        assert spans(part) == [(version, 0, end - start)]
        assert part.token_ids.tolist() == whole.token_ids[start:end].tolist()
        assert np.abs(part.sampler_logprobs - whole.sampler_logprobs[start:end]).max() < TOLERANCE


def test_each_request_is_answered_as_it_is_done(engines: Engines) -> None:
    engines.load(0)

    async def main() -> list[int]:
        order: list[int] = []

        async def ask(num_tokens: int) -> None:
            session = Session(engines.sample(f"Generate {num_tokens}.", 56), 0)
            await engines.policy.generate(session, sampling(num_tokens, seed=1))
            order.append(num_tokens)

        async with asyncio.TaskGroup() as asking:
            for num_tokens in (200, 3, 40):
                asking.create_task(ask(num_tokens))
        return order

    assert asyncio.run(main())[0] == 3


def test_a_late_request_is_generated_beside_those_that_run(engines: Engines) -> None:
    engines.load(0)
    hold = Hold(5)
    early, late = engines.sample("Early.", 56), engines.sample("Late.", 84)

    async def main() -> tuple[Generation, Generation]:
        engines.install(hold)
        first = asyncio.create_task(engines.policy.generate(Session(early, 0), sampling(300, greedy=True)))
        while not await engines.actor.__ray_call__.remote(lambda actor: actor.hold.reached):
            await asyncio.sleep(0.01)
        second = await engines.policy.generate(Session(late, 0), sampling(4, greedy=True))
        assert not first.done()
        return await first, second

    first, second = asyncio.run(main())
    assert len(second.token_ids) <= 4 < len(first.token_ids)


def test_who_gives_up_is_aborted(engines: Engines) -> None:
    """An episode over its time frees its place in the engine at once."""
    engines.load(0)
    hold = Hold(5)

    async def main() -> None:
        engines.install(hold)
        asking = [
            asyncio.create_task(
                engines.policy.generate(Session(engines.sample("Go on.", 56), i), sampling(400, greedy=True))
            )
            for i in range(2)
        ]
        while not await engines.actor.__ray_call__.remote(lambda actor: actor.hold.reached):
            await asyncio.sleep(0.01)
        asking[0].cancel()
        while await engines.actor.__ray_call__.remote(lambda actor: len(actor._engine._running)) > 1:
            await asyncio.sleep(0.01)
        assert not asking[1].done()
        assert isinstance(await asking[1], Generation)

    asyncio.run(asyncio.wait_for(main(), 120))


def test_a_bad_request_fails_alone(engines: Engines) -> None:
    """Law 3 in continuous mode: the others run on."""
    good = engines.sample("Good.", 56)
    ids = np.insert(good.prompt.token_ids, 5, good.prompt.token_ids[5])
    prompt = replace(good.prompt, token_ids=ids, position_ids=np.tile(np.arange(len(ids)), (3, 1)))
    bad = replace(good, id="tampered", prompt=prompt)

    async def main() -> list[Any]:
        asking = (engines.policy.generate(Session(sample, 0), sampling(6)) for sample in (good, bad, good))
        return await asyncio.gather(*asking, return_exceptions=True)

    first, error, last = asyncio.run(main())
    assert isinstance(first, Generation)
    assert isinstance(last, Generation)
    assert isinstance(error, EngineError)
    assert "law 3" in str(error)


def test_no_more_requests_are_given_than_the_gate_lets_in(engines: Engines) -> None:
    engines.load(0)
    gate, most = AdmissionQueue[Any](2, 8), 0

    async def main() -> list[Generation]:
        nonlocal most
        asking = [
            asyncio.create_task(
                engines.policy.generate(Session(engines.sample(f"Ask {i}.", 56), 0), sampling(4 + i, seed=i))
            )
            for i in range(6)
        ]
        while not all(task.done() for task in asking):
            most = max(
                most, await engines.actor.__ray_call__.remote(lambda actor: len(actor._engine._running))
            )
            await asyncio.sleep(0)
        return await asyncio.gather(*asking)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines.policy, "_gates", [gate])
        assert len(asyncio.run(main())) == 6
    assert most <= 2
    assert gate.num_inside == 0


def test_an_engine_that_does_not_load_in_time_ends_in_an_error(engines: Engines) -> None:
    replica = engines.policy._replicas[0]
    sleeping = engines.actor.__ray_call__.remote(
        lambda actor: actor._engine.run(lambda: __import__("time").sleep(3)).done()
    )
    assert cluster.fetch(sleeping) is False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica, "_timeout_s", 0.3)
        with pytest.raises(EngineError, match=r"not loaded version 1 after weights.timeout_s=0.3"):
            engines.load(1)
