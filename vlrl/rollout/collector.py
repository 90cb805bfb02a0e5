"""Turn tickets into batches: groups are generated, scored and filtered until the next batch is whole.

    Buffer ──admit──► generate (sample → roll out → score → credit) ──► filters ──► Buffer ──cut──► batch
       ▲                                                              │ dropped: another takes its place
       └──────────────────────────────────────────────────────────────┘

Two ways of one loop. In rounds: all tickets that may run are generated together, then looked at; nothing runs
while the trainer steps, and what a step consumes is a function of the run's history (law 8). Streaming: every
ticket is a task of its own on the run's event loop, also while the trainer steps.

Consumes: what `generate` returns. Waits for: the head of the buffer. Unblocked by: its end, or `advance`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vlrl.config import Config
from vlrl.config.asynchronous import BatchConfig
from vlrl.errors import DataError, InternalError
from vlrl.rollout.buffer import Buffer, State, Ticket
from vlrl.rollout.groups import require_played, require_scored
from vlrl.rollout.outcome import EMPTY, Round, TicketOutcome
from vlrl.rollout.replay import GroupReplay
from vlrl.scoring.compose import RewardFailure
from vlrl.tracking.group_numbers import GroupNumbers

STUCK = "no sample may be generated and none is being generated: was the last batch trained?"


GenerateFn = Callable[[Sequence[Ticket[TicketOutcome]]], Awaitable[Round]]
CheckFn = Callable[["CollectedBatch"], None]
PrefetchFn = Callable[[Mapping[int, int]], None]
"""Takes rows by position."""


@dataclass(slots=True)
class CollectedBatch:
    """What a step trains, and the outcomes of other samples.

    Attributes:
        groups: numbers of those that were generated for the step, in the order of their samples.
        tickets: that they were generated for, whose outcomes have the groups themselves.
        trained: outcomes of the groups that the step trains: the tickets', or earlier ones in their places.
        dropped: by filters, since the last batch.
        refused: outcomes that filters left nothing of, since the last batch, if they are kept.
        generated: since the last batch, whichever batch will train it.
        failures: of scoring, among `generated`.
        counts: of what happened to episodes, among `generated`.
        rows: what was dropped on the way to the samples of `generated`, by metric.
        metrics: `groups/…`, if any group can be dropped or wait.
        seconds: that generates took, by part, where they took turns with the trainer; else empty.
    """

    groups: list[GroupNumbers] = field(default_factory=list)
    tickets: tuple[Ticket[TicketOutcome], ...] = ()
    trained: list[TicketOutcome] = field(default_factory=list)
    dropped: list[GroupNumbers] = field(default_factory=list)
    refused: list[TicketOutcome] = field(default_factory=list)
    generated: list[GroupNumbers] = field(default_factory=list)
    failures: list[RewardFailure] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def require_healthy(config: Config, batch: CollectedBatch) -> None:
    """Raise EnvError or ScoringError if more of a batch failed than the config tolerates."""
    members = [t for group in batch.generated for t in (*group.members, *group.greedy)]
    failed = [member.failure for member in members if member.failed]
    require_played(failed, len(members), config.episodes.max_failed_share)
    require_scored(batch.failures, len(members), config.scoring.max_failed_share)


class Collector:
    """Makes batches of what `generate` generates.

    Attributes:
        buffer: the tickets.
        replay: earlier groups that take the places of those without a signal; None is never.
    """

    def __init__(
        self,
        buffer: Buffer[TicketOutcome],
        generate: GenerateFn,
        *,
        filters: Sequence[str],
        options: BatchConfig,
        streams: bool,
        check: CheckFn,
        prefetch: PrefetchFn = lambda chosen: None,
        replay: GroupReplay | None = None,
        keeps_refused: bool = False,
    ) -> None:
        """Nothing is generated before the first batch is asked for.

        Args:
            buffer: new or restored.
            generate: what tickets become; called for one at a time when streaming.
            filters: names that dropped tickets are counted under; without any nothing is dropped.
            options: when too much is dropped.
            streams: generate while the trainer steps.
            check: raises if a batch, whole or not, saw too many failures.
            prefetch: has rows that an adaptive sampler chose for later tickets prepared.
            replay: of earlier groups, new or restored.
            keeps_refused: have batches keep what filters refused, for the rollouts on disk.
        """
        self.buffer, self.replay = buffer, replay
        self._generate, self._filters, self._options, self._check = generate, filters, options, check
        self._streams, self._prefetch, self._keeps_refused = streams, prefetch, keeps_refused
        self._batch = CollectedBatch()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._error: Exception | None = None

    async def batch(self) -> CollectedBatch:
        """The next batch, once it is whole.

        Raises:
            DataError: if batch.max_dropped_share of what was generated was dropped.
        """
        while (cut := self.buffer.cut()) is None:
            await (self._wait() if self._streams else self._play_round())
        batch, self._batch = self._batch, CollectedBatch()
        batch.tickets = cut.tickets
        outcomes = batch.trained = [ticket.payload for ticket in cut.tickets if ticket.payload]
        batch.groups = [group for outcome in outcomes for group in outcome.kept]
        if self._filters or self._streams:
            batch.metrics = self._metrics(cut.counts)
        if self._streams:
            batch.seconds = {}
            self._start()  # on the slots that came back
        if self.replay is not None:
            batch.trained = self.replay.fill(outcomes, self.buffer.num_cut - 1)
            batch.metrics |= self.replay.metrics()
        if self.buffer.rows is not None:
            batch.metrics |= self.buffer.rows.metrics()
            self._prefetch(self.buffer.rows_ahead())
        self._check(batch)
        return batch

    async def fill(self) -> None:
        """When streaming: finish all tickets that may run; batches are then as stale as allowed."""
        self._start()
        while self._tasks:
            await self._wait()

    def advance(self, version: int) -> None:
        """The policy generates under these weights from now on; the next batch begins with them."""
        self.buffer.advance(version)

    async def close(self) -> None:
        """Cancel what runs; in the buffer it is to be generated again."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _play_round(self) -> None:
        tickets = self.buffer.admit()
        if not tickets:
            raise InternalError(STUCK)
        self._settle(tickets, await self._generate(tickets))

    async def _wait(self) -> None:
        """Wait until something has happened to a running ticket."""
        if self._error is not None:
            raise self._error
        self._start()
        if not self._tasks:
            raise InternalError(STUCK)
        await self._changed.wait()
        self._changed.clear()

    def _start(self) -> None:
        """Give every admitted ticket its task."""
        for ticket in self.buffer.admit():
            self._tasks[ticket.position] = asyncio.get_running_loop().create_task(self._play(ticket))

    async def _play(self, ticket: Ticket[TicketOutcome]) -> None:
        """One ticket, from its admission to its outcome."""
        try:
            try:
                round_ = await self._generate([ticket])
            except BaseException:  # a cancellation, or what ends the run: a checkpoint would redo the ticket
                self.buffer.lose(ticket.position)
                raise
            self._settle([ticket], round_)
            self._start()  # its slot, if it was dropped, is another's
        except Exception as error:  # of any kind: raised where the batch is waited for
            self._error = self._error or error
        finally:
            del self._tasks[ticket.position]
            self._changed.set()

    def _settle(self, tickets: Sequence[Ticket[TicketOutcome]], round_: Round) -> None:
        """Keep or drop what was generated."""
        batch = self._batch
        batch.failures += round_.failures
        batch.counts.update(round_.counts)
        batch.rows.update(round_.rows)
        for part, seconds in round_.seconds.items():
            batch.seconds[part] += seconds
        for ticket, outcome in zip(tickets, round_.outcomes, strict=True):
            if self.buffer.rows is not None:
                self.buffer.rows.settle(ticket.position, ticket.row, outcome)
            batch.generated += [*outcome.kept, *outcome.dropped]
            batch.dropped += outcome.dropped
            outcome.position = ticket.position
            if self._filters and not outcome.kept:
                if self._keeps_refused:
                    batch.refused.append(outcome)
                self.buffer.drop(ticket.position, outcome.reason)
            else:
                self.buffer.finish(ticket.position, outcome, outcome.oldest_version)
        self._require_kept()

    def _require_kept(self) -> None:
        """Raise if so much was dropped that the batch, were all to come kept, would exceed the share.

        Streaming, batches behind the next one are generated as well while a slow group of it is awaited.
        """
        dropped = self._dropped(self.buffer.counts)
        num_dropped, size = sum(dropped.values()), self.buffer.limits.batch_size
        num_kept = max(size, self.buffer.num_in(State.DONE))
        share = self._options.max_dropped_share
        if num_dropped <= share * (num_dropped + num_kept):
            return
        self._check(self._batch)  # failures have more to say
        by_reason = ", ".join(f"{count} by {reason}" for reason, count in dropped.most_common())
        raise DataError(
            f"batch.filters dropped {num_dropped} groups before a batch of {size} was whole ({by_reason}), "
            f"more than batch.max_dropped_share={share:g} allows. If zero_variance did, the rows are too "
            "easy or too hard for this policy: see reward/mean, give other rows, a finer reward or a larger "
            "rollout.group_size"
        )

    def _dropped(self, counts: Counter[str]) -> Counter[str]:
        return Counter({name: counts[name] for name in (EMPTY, *self._filters) if counts[name]})

    def _metrics(self, counts: Counter[str]) -> dict[str, float]:
        dropped = self._dropped(counts)
        found = {f"groups/dropped_{name}": float(dropped[name]) for name in self._filters}
        found[f"groups/dropped_{EMPTY}"] = float(dropped[EMPTY])
        total = dropped.total() + counts["consumed"]
        found["groups/dropped_share"] = dropped.total() / total
        found["groups/num_stale"] = float(counts["stale"])
        if self._streams:
            found["groups/num_running"] = float(self.buffer.num_in(State.RUNNING))
            found["groups/num_waiting"] = float(self.buffer.num_in(State.DONE))
        return found
