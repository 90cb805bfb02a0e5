"""One engine as a client sees it: requests go to its actor, and to the next one if that dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from vlrl import cluster
from vlrl.engine.requests import EngineRequest, GenerationResult, Load, Wave
from vlrl.errors import EngineDied


class EngineLink:
    """Sends requests to an engine, and again to the one that takes its place.

    Attributes:
        actor: the engine's, or of one that died until another can take its place.
        counts: `resubmitted_requests`.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.counts: Counter[str] = Counter()

    async def renew(self, dead: Any, reason: EngineDied) -> None:
        """See to it that `actor` is not the dead one any more.

        Raises:
            EngineError: if no other may take its place.
        """
        raise NotImplementedError

    async def generate(
        self,
        requests: Sequence[EngineRequest],
        references: Mapping[str, Any],
        *,
        whole: bool,
        wave: Wave | None = None,
    ) -> AsyncIterator[tuple[int, GenerationResult, Load | None]]:
        """Each request's index and result as it is done, or all together if they are generated as a batch.

        Requests that were lost with their engine are generated again by the next, under the same seeds.
        """
        waiting, asks = dict(enumerate(requests)), True
        while asks:
            actor, indices, asked = self.actor, list(waiting), list(waiting.values())
            try:
                if whole:
                    batch = await cluster.fetch_async(actor.generate_batch.remote(asked, references, wave))
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
                self.counts["resubmitted_requests"] += len(waiting)
                await self.renew(actor, error)

    def abort(self, name: str) -> None:
        """Nobody waits for this request any more."""
        self.actor.abort.remote([name])
