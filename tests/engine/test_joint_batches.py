"""Batches that several clients make together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from vlrl.engine.joint_batches import JointBatches
from vlrl.engine.requests import EngineRequest, JointBatch
from vlrl.errors import EngineError
from vlrl.types import Sampling

CLIENTS = (0, 1)


def request(client: int, position: int) -> EngineRequest:
    nothing = np.zeros(0, np.int64)
    return EngineRequest(
        f"{client}/{position}", "sample", nothing, nothing, (), Sampling(1.0, 1, 0), (position, 0)
    )


class Recorder:
    """Answers each request with its name; batches are kept."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    async def __call__(self, requests: Sequence[EngineRequest], references: Mapping[str, Any]) -> Any:
        self.seen.append([r.name for r in requests])
        if any(r.order[0] == 13 for r in requests):
            raise EngineError("13")
        return [r.name for r in requests]


async def join(batches: JointBatches, client: int, *positions: int) -> Any:
    requests = [request(client, position) for position in positions]
    return await batches.join(JointBatch("round", client, CLIENTS), requests, {})


def test_they_are_in_the_order_of_positions_whoever_asks_first() -> None:
    async def play() -> None:
        for order in (CLIENTS, CLIENTS[::-1]):
            recorder = Recorder()
            batches, positions = JointBatches(recorder), {0: (0, 4), 1: (2, 6)}
            answers = await asyncio.gather(*(join(batches, client, *positions[client]) for client in order))
            assert dict(zip(order, answers, strict=True)) == {0: ["0/0", "0/4"], 1: ["1/2", "1/6"]}
            assert recorder.seen == [["0/0", "1/2", "0/4", "1/6"]]

    asyncio.run(play())


def test_who_has_left_is_not_waited_for_and_who_asks_nothing_is_answered() -> None:
    async def play() -> None:
        recorder = Recorder()
        batches = JointBatches(recorder)
        nothing, asked = await asyncio.gather(join(batches, 0), join(batches, 1, 1))
        assert (nothing, asked) == ([], ["1/1"])
        waiting = asyncio.ensure_future(join(batches, 1, 3))
        await asyncio.sleep(0)
        assert not waiting.done()
        batches.leave("round", 0)
        assert await waiting == ["1/3"]
        assert await join(batches, 1, 5) == ["1/5"]  # alone from now on
        batches.end("round")
        assert recorder.seen == [["1/1"], ["1/3"], ["1/5"]]

    asyncio.run(play())


def test_who_leaves_while_it_asks_nothing_is_answered() -> None:
    async def play() -> None:
        batches = JointBatches(Recorder())
        idle = asyncio.ensure_future(join(batches, 0))
        await asyncio.sleep(0)
        batches.leave("round", 0)
        assert await idle == []

    asyncio.run(play())


def test_a_failure_is_that_of_the_client_whose_request_it_was() -> None:
    async def play() -> None:
        batches = JointBatches(Recorder())
        good, bad = await asyncio.gather(join(batches, 0, 0), join(batches, 1, 13), return_exceptions=True)
        assert good == ["0/0"]
        assert isinstance(bad, EngineError)

    asyncio.run(play())


def test_asking_twice_in_one_turn_is_an_error() -> None:
    async def play() -> None:
        batches = JointBatches(Recorder())
        first = asyncio.ensure_future(join(batches, 0, 0))
        await asyncio.sleep(0)
        with pytest.raises(Exception, match="client 0 asks twice in one turn of round round"):
            await join(batches, 0, 2)
        first.cancel()

    asyncio.run(play())
