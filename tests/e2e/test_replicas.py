"""Two engines as one policy: episodes stay where their prefix is, and a killed engine is replaced.

The engines generate in continuous mode; the kills are real, in the middle of requests.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_config, open_tiny, random_image, row
from versions import Hold, shaken_segments

from vlrl import cluster
from vlrl.engine.policy import VllmPolicy
from vlrl.engine.replica import Replica
from vlrl.errors import EngineError
from vlrl.rollout.session import Session
from vlrl.types import Generation, Sample, Sampling
from vlrl.weights.manifest import Manifest

# Minutes of engines and ranks; the pieces have quick tests of their own.
pytestmark = pytest.mark.slow(together=True)


def pid_of(actor: Any) -> int:
    """Process id of an actor."""
    return int(cluster.fetch(actor.__ray_call__.remote(lambda actor: __import__("os").getpid())))


class Engines:
    """The policy on two engines, and what the tests do to them."""

    def __init__(self, model: Path, manifests: list[Manifest]) -> None:
        generator = {"mode": "continuous", "num_replicas": 2, "max_restarts": 2, "cpus": 0.5}
        config = make_config(model, generator=generator)
        self.processor = open_tiny(model)
        self.policy = VllmPolicy(config, self.processor)
        self.manifests = manifests

    def samples(self, num: int) -> list[Sample]:
        """Questions about an image each."""
        rows = [row(f"Question {i}.", [random_image(56, 84, i)], row_id=f"q{i}") for i in range(num)]
        return [self.processor.sample(each) for each in rows]

    def ask(self, sample: Sample, index: int, num_tokens: int) -> asyncio.Task[Generation]:
        """Begin to generate an answer under a seed that is this request's alone."""
        sampling = Sampling(1.0, num_tokens, seed=1000 * index + len(sample.id))
        return asyncio.create_task(self.policy.generate(Session(sample, index), sampling))

    def pids(self) -> list[int]:
        """Process ids of the engines."""
        return [pid_of(replica.actor) for replica in self.replicas]

    @property
    def replicas(self) -> list[Any]:
        """What stands for each engine."""
        return self.policy._replicas


@pytest.fixture(scope="module")
def engines(tiny_model: Path, local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    started = Engines(tiny_model, shaken_segments(tiny_model, tmp_path_factory.mktemp("segments"), 3))
    try:
        started.policy.wait_ready()
        yield started
    finally:
        started.policy.close()


def test_a_killed_engine_is_replaced_and_its_requests_are_generated_again(engines: Engines) -> None:
    """Same seeds, same weights: the answers are those that nobody disturbed."""
    policy, samples = engines.policy, engines.samples(4)
    policy.load_weights(engines.manifests[1], 1)

    async def generate(hold: Hold | None) -> list[Generation]:
        if hold:
            replica = engines.replicas[0]
            await replica.actor.__ray_call__.remote(lambda actor: hold.install(actor))
        asking = [engines.ask(sample, index, 12) for sample in samples for index in range(2)]
        if hold:
            while not await replica.actor.__ray_call__.remote(lambda actor: actor.hold.reached):
                await asyncio.sleep(0.01)
            pid = await replica.actor.__ray_call__.remote(lambda actor: __import__("os").getpid())
            os.kill(pid, signal.SIGKILL)
        return await asyncio.gather(*asking)

    undisturbed = asyncio.run(generate(None))
    before = engines.pids()
    killed = asyncio.run(generate(Hold(5)))
    after = engines.pids()
    assert policy.counts["replaced_engines"] == 1
    assert 1 <= policy.counts["resubmitted_requests"] <= 4
    assert (after[0] != before[0], after[1] == before[1]) == (True, True)
    for one, other in zip(undisturbed, killed, strict=True):
        assert one.token_ids.tolist() == other.token_ids.tolist()
        assert np.allclose(one.sampler_logprobs, other.sampler_logprobs, atol=1e-5)
        assert {span.version for span in other.version_spans} == {1}


def test_an_engine_that_dies_before_an_update_comes_back_with_the_new_weights(engines: Engines) -> None:
    policy = engines.policy
    os.kill(engines.pids()[1], signal.SIGKILL)
    policy.load_weights(engines.manifests[2], 2)
    assert policy.counts["replaced_engines"] == 2

    async def generate() -> list[Generation]:
        return await asyncio.gather(*(engines.ask(sample, 0, 3) for sample in engines.samples(4)))

    assert {s.version for g in asyncio.run(generate()) for s in g.version_spans} == {2}


def test_an_engine_that_dies_as_it_starts_is_replaced_again_and_again(engines: Engines) -> None:
    """The one that takes a dead one's place may die as well, and nobody may ask it before it can answer."""
    known, spawned = engines.replicas[0], list[Any]()

    def spawn() -> Any:
        spawned.append(known._spawn())
        return spawned[-1]

    replica = Replica(spawn, known._place, max_restarts=2, timeout_s=60)
    try:
        waiting = threading.Thread(target=replica.wait_ready)
        waiting.start()
        for num_killed in range(2):
            while len(spawned) == num_killed:
                time.sleep(0.01)
            os.kill(pid_of(spawned[-1]), signal.SIGKILL)
            assert replica.actor is spawned[0]
        waiting.join()
        assert replica.counts["replaced_engines"] == 2
        assert replica.actor is spawned[2]
        assert pid_of(replica.actor) > 0
    finally:
        replica.close()


def test_members_of_a_group_share_an_engine_and_groups_are_spread(engines: Engines) -> None:
    async def generate() -> list[list[int]]:
        asking = [engines.ask(sample, index, 2) for sample in engines.samples(4) for index in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        spread = list(engines.policy._router._open)
        await asyncio.gather(*asking)
        return [spread, list(engines.policy._router._open)]

    assert asyncio.run(generate()) == [[6, 6], [0, 0]]


def test_an_engine_that_dies_again_and_again_ends_the_run(engines: Engines) -> None:
    replica = engines.replicas[0]
    replica.counts["replaced_engines"] = 2

    async def generate() -> None:
        os.kill(engines.pids()[0], signal.SIGKILL)
        await asyncio.gather(*(engines.ask(sample, 0, 3) for sample in engines.samples(4)))

    with pytest.raises(
        EngineError, match=r"generator.max_restarts=2 engines were replaced, and one more has died"
    ):
        asyncio.run(generate())
