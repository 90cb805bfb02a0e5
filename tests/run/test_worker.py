"""A rollout worker between its calls: what engines hear of it."""

from __future__ import annotations

import asyncio
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import make_config, random_image

from vlrl.engine.requests import JointBatch
from vlrl.errors import EngineError
from vlrl.rollout.outcome import Round, TicketOutcome
from vlrl.run.players.division import Division
from vlrl.run.players.worker import RolloutWorker
from vlrl.types import Media


class FakeEngine:
    """An engine's actor that notes who leaves which round."""

    def __init__(self) -> None:
        self.left: list[tuple[str, int]] = []
        self.leave = SimpleNamespace(remote=lambda *who: self.left.append(who))


async def play(player: Any, tickets: Any) -> Round:
    """Nothing, of no tickets."""
    return Round([])


def test_who_has_left_a_round_leaves_it_at_the_next_engine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise that engine would wait without an end for a worker that never noticed the death."""
    monkeypatch.setattr("vlrl.run.players.worker.open_player", lambda *_, **__: None)
    dead, other, untouched = FakeEngine(), FakeEngine(), FakeEngine()

    async def run() -> None:
        division = Division(engine_nodes=(0, 0), worker_nodes=(0, 0))
        worker = RolloutWorker(make_config(), 1, division, [dead, untouched])
        await worker.start()
        await worker.play(play, [], {0: JointBatch("round 3", 1, (0, 1))})
        await worker.renewed(0, EngineError("one that could not be replaced"))
        await worker.renewed(0, other)

    asyncio.run(run())
    assert dead.left == other.left == [("round 3", 1)]
    assert not untouched.left


class Reference:
    """A reference to a value in shared memory."""


def test_frames_that_ranks_are_to_have_lie_in_shared_memory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines' copies go when the groups' own are made: a step's frames would lie there twice else."""
    monkeypatch.setattr("vlrl.run.players.worker.open_player", lambda *_, **__: None)
    lying = weakref.WeakSet[Reference]()

    def put(value: Any) -> Reference:
        lying.add(reference := Reference())
        return reference

    monkeypatch.setattr("vlrl.cluster.put", put)
    trained, going_on = (
        Media("image", f"image {seed}", random_image(112, 112, seed)[None], (112, 112), (1, 8, 8), 16)
        for seed in (0, 1)
    )
    worker = RolloutWorker(make_config(), 0, Division(engine_nodes=(0,), worker_nodes=(0,)), [FakeEngine()])

    async def play(player: Any, tickets: Any) -> Round:
        worker._client.media.references([trained, going_on])
        assert len(lying) == 2
        return Round([TicketOutcome((), (), [trained])])

    async def run() -> list[Any]:
        await worker.start()
        return await worker.play(play, [], {})

    _, pickled, frames = asyncio.run(run())
    assert list(frames) == [trained.sha256]
    assert np.array_equal(frames[trained.sha256], trained.frames)
    assert len(lying) == 1  # that of another episode
    assert len(pickled) < trained.frames.nbytes
