"""Batches of one engine that several clients make together: the same batches as if one had asked for all."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from vlrl.engine.requests import EngineRequest, JointBatch
from vlrl.errors import InternalError
from vlrl.types import Generation

GenerateFn = Callable[[Sequence[EngineRequest], Mapping[str, Any]], Awaitable[Sequence[Generation]]]


class JointBatches:
    """Joins the requests of clients that play in lockstep (law 8).

    Consumes: each client's requests, none if its episodes here have ended. Waits for: every client of a round
    that has not left it. Unblocked by: the last one's requests, or its `leave`.
    """

    def __init__(self, generate: GenerateFn) -> None:
        """`generate` generates a batch, its results in the order of the requests."""
        self._generate = generate
        self._rounds: dict[str, _Round] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def join(
        self, joint: JointBatch, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> list[Generation]:
        """Generate a client's requests beside those of the others, in the requests' own order."""
        round_ = self._rounds.setdefault(joint.round, _Round())
        answer: asyncio.Future[list[Generation]] = asyncio.get_running_loop().create_future()
        round_.clients = frozenset(joint.clients)
        if joint.client in round_.waiting:
            raise InternalError(f"client {joint.client} asks twice in one turn of round {joint.round}")
        round_.waiting[joint.client] = (requests, references, answer)
        self._release(round_)
        return await answer

    def leave(self, round_name: str, client: int) -> None:
        """A client has no more requests of this round; it may never have had one."""
        round_ = self._rounds.setdefault(round_name, _Round())
        round_.left.add(client)
        if client in round_.waiting:  # it asked nothing, or it has died
            round_.waiting.pop(client)[2].set_result([])
        self._release(round_)

    def end(self, round_name: str) -> None:
        """All clients have left the round."""
        self._rounds.pop(round_name, None)

    def _release(self, round_: _Round) -> None:
        if round_.waiting and round_.clients <= round_.left | round_.waiting.keys():
            waiting, round_.waiting = round_.waiting, {}
            task = asyncio.get_running_loop().create_task(self._run(list(waiting.values())))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, waiting: Sequence[_Waiting]) -> None:
        """Generate what clients wait for; what makes a joint batch fail may be one client's alone."""
        try:
            await self._answer(waiting)
        except Exception as error:  # of any kind: handed on to whoever waits
            for one in waiting:
                try:
                    if len(waiting) == 1:
                        raise error
                    await self._answer([one])
                except Exception as own:
                    if not one[2].done():
                        one[2].set_exception(own)

    async def _answer(self, waiting: Sequence[_Waiting]) -> None:
        merged = sorted((request for requests, _, _ in waiting for request in requests), key=_order)
        references = {name: ref for _, of_client, _ in waiting for name, ref in of_client.items()}
        results = await self._generate(merged, references) if merged else ()
        by_name = {request.name: result for request, result in zip(merged, results, strict=True)}
        for requests, _, answer in waiting:
            if not answer.done():
                answer.set_result([by_name[request.name] for request in requests])


class EngineActor(ABC):
    """What the actors of engines have in common: batches that several clients may make together."""

    def __init__(self) -> None:
        self._joint = JointBatches(self._generate_whole)

    async def generate_batch(
        self,
        requests: Sequence[EngineRequest],
        references: Mapping[str, Any],
        joint: JointBatch | None = None,
    ) -> Sequence[Generation]:
        """Generate requests together, with those of the joint batch's other clients if there is one."""
        if joint is not None:
            return await self._joint.join(joint, requests, references)
        return await self._generate_whole(requests, references)

    async def leave(self, round_name: str, client: int) -> None:
        """A client has no more requests of a round, see `JointBatches.leave`."""
        self._joint.leave(round_name, client)

    async def end_round(self, round_name: str) -> None:
        """All clients have left a round."""
        self._joint.end(round_name)

    @abstractmethod
    async def _generate_whole(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> Sequence[Generation]:
        """Generate a batch, its results in the order of the requests."""


def _order(request: EngineRequest) -> tuple[int, int]:
    return request.order


_Waiting = tuple[Sequence[EngineRequest], Mapping[str, Any], "asyncio.Future[list[Generation]]"]


class _Round:
    """What is known of a round: its clients, who has left it, and who waits."""

    def __init__(self) -> None:
        self.clients: frozenset[int] = frozenset()
        self.left: set[int] = set()
        self.waiting: dict[int, _Waiting] = {}
