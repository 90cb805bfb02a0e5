"""A rollout worker between its calls: what engines hear of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from builders import make_config

from vlrl.engine.requests import JointBatch
from vlrl.errors import EngineError
from vlrl.rollout.outcome import Round
from vlrl.run.players.division import Division
from vlrl.run.players.worker import RolloutWorker


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
