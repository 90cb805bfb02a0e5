"""Where episodes are played and batches are packed: in the driver, or in workers that have the groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from vlrl.batch import Batch, StepBatch, TokenValues
from vlrl.packing.minibatch import packed_part
from vlrl.packing.options import PackOptions
from vlrl.rollout.buffer import Ticket
from vlrl.rollout.outcome import Round, TicketOutcome
from vlrl.run.players.heldout import Answers, Asking
from vlrl.run.players.player import Player
from vlrl.run.players.tables import OutcomeNumbers, tabulated
from vlrl.types import Group, Sample

GenerateFn = Callable[[Player, Sequence[Ticket[TicketOutcome]]], Awaitable[Round]]
"""What tickets become, by a player: `vlrl.grpo.generate_groups`."""


class Rollouts(Protocol):
    """Plays tickets and samples that are not trained, and keeps the tickets' groups."""

    async def play(self, generate: GenerateFn, tickets: Sequence[Ticket[TicketOutcome]]) -> Round:
        """What tickets become."""
        ...

    async def answer(
        self, samples: Sequence[Sample], asking: Asking, positions: Sequence[int] | None = None
    ) -> Answers:
        """Samples that are not trained, played and scored; positions are in the seeds, by default 0, 1, 2."""
        ...

    def pack(
        self, outcomes: Sequence[TicketOutcome], part: slice, options: PackOptions, version: int
    ) -> StepBatch:
        """Pack a part of all groups of some outcomes for one optimizer step."""
        ...

    def tabulate(
        self, outcomes: Sequence[TicketOutcome], numbers: Sequence[OutcomeNumbers], values: TokenValues
    ) -> list[pa.Table]:
        """Outcomes as tables (`vlrl.tracking.rollouts.table`), their images written."""
        ...

    def prefetch(self, chosen: Mapping[int, int]) -> None:
        """Have samples of positions prepared whose rows an adaptive sampler chose."""
        ...

    def fetch(self, outcome: TicketOutcome) -> list[Group]:
        """An outcome's groups."""
        ...

    def take_published(self) -> dict[str, float]:
        """What the rewards have published since this was called last."""
        ...

    def take_counts(self) -> dict[str, float]:
        """How many workers were replaced since this was called last."""
        ...

    async def close(self) -> None:
        """Stop what was started."""
        ...


class InProcess:
    """Rollouts in the driver's own process."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def play(self, generate: GenerateFn, tickets: Sequence[Ticket[TicketOutcome]]) -> Round:
        """What tickets become."""
        return await generate(self._player, tickets)

    async def answer(
        self, samples: Sequence[Sample], asking: Asking, positions: Sequence[int] | None = None
    ) -> Answers:
        """Samples that are not trained, played and scored."""
        return await self._player.answer(samples, positions or range(len(samples)), asking)

    def pack(
        self, outcomes: Sequence[TicketOutcome], part: slice, options: PackOptions, version: int
    ) -> Batch:
        """Pack a part of all groups of some outcomes for one optimizer step."""
        groups = [group for outcome in outcomes for group in outcome.groups]
        return packed_part(groups, part, options, version)

    def tabulate(
        self, outcomes: Sequence[TicketOutcome], numbers: Sequence[OutcomeNumbers], values: TokenValues
    ) -> list[pa.Table]:
        """Outcomes as tables, their images written."""
        player, of_outcomes = self._player, [outcome.groups for outcome in outcomes]
        processor = player.context.processor
        return [tabulated(of_outcomes, numbers, values, processor, player.config.run_dir).table]

    def prefetch(self, chosen: Mapping[int, int]) -> None:
        """Have samples of positions prepared whose rows an adaptive sampler chose."""
        self._player.stream.prefetch(chosen)

    def fetch(self, outcome: TicketOutcome) -> list[Group]:
        """An outcome's groups."""
        return list(outcome.groups)

    def take_published(self) -> dict[str, float]:
        """What the rewards have published since this was called last."""
        return self._player.reward.take_metrics()

    def take_counts(self) -> dict[str, float]:
        """There are no workers."""
        return {}

    async def close(self) -> None:
        """Nothing was started."""
