"""One engine as a client sees it: requests go to its actor, and to the next one if that dies."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from vlrl import cluster
from vlrl.engine.requests import EngineRequest, GenerationResult, JointBatch, Load
from vlrl.errors import EngineDied, VlrlError


class EngineLink(ABC):
    """Sends requests to an engine, and again to the one that takes its place.

    Attributes:
        actor: the engine's, or of one that died until another can take its place.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    @abstractmethod
    async def renew(self, dead: Any, reason: EngineDied, num_lost: int) -> None:
        """See to it that `actor` is not the dead one any more, with which num_lost requests were lost.

        Raises:
            EngineError: if no other may take its place.
        """

    async def generate(
        self,
        requests: Sequence[EngineRequest],
        references: Mapping[str, Any],
        *,
        whole: bool,
        joint: JointBatch | None = None,
    ) -> AsyncIterator[tuple[int, GenerationResult, Load | None]]:
        """Each request's index and result as it is done, or all together if they are generated as a batch.

        Requests that were lost with their engine are generated again by the next, under the same seeds.
        """
        waiting, asks = dict(enumerate(requests)), True
        while asks:
            actor, indices, asked = self.actor, list(waiting), list(waiting.values())
            try:
                if whole:
                    batch = await cluster.fetch_async(actor.generate_batch.remote(asked, references, joint))
                    for index, result in zip(indices, batch, strict=True):
                        del waiting[index]
                        yield index, result, None
                    asks = False
                else:
                    async for place, result, load in cluster.stream(actor.generate, asked, references):
                        del waiting[indices[place]]
                        yield indices[place], result, load
                    asks = bool(waiting)
            except EngineDied as error:
                await self.renew(actor, error, len(waiting))

    def abort(self, name: str) -> None:
        """Abort a request whose result is no longer awaited."""
        self.actor.abort.remote([name])


class Renewals:
    """Replaced engines, as a client in another process than their owner's learns of them.

    Consumes: the owner's `arrived`. Waits for: the next engine of a number. Unblocked by: `arrived`, with the
    engine or with the reason why there is none.
    """

    def __init__(self, ask: Callable[[int, Any, str, int], None]) -> None:
        """What `ask` reports to the owner: number, the dead engine, what killed it, lost requests."""
        self._ask = ask
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def next(self, number: int, dead: Any, reason: EngineDied, num_lost: int) -> Any:
        """The engine in the dead one's place."""
        coming = self._waiting.get(number)
        if coming is None:
            coming = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._ask(number, dead, str(reason), num_lost)
        return await asyncio.shield(coming)

    def arrived(self, number: int, engine: Any | VlrlError) -> None:
        """The owner's answer."""
        coming = self._waiting.pop(number, None)
        if coming is None:
            return
        if isinstance(engine, VlrlError):
            coming.set_exception(engine)
        else:
            coming.set_result(engine)


class RemoteLink(EngineLink):
    """An engine whose owner is another process."""

    def __init__(self, number: int, actor: Any, renewals: Renewals) -> None:
        super().__init__(actor)
        self._number, self._renewals = number, renewals

    async def renew(self, dead: Any, reason: EngineDied, num_lost: int) -> None:
        """Ask the owner for another."""
        self.actor = await self._renewals.next(self._number, dead, reason, num_lost)
