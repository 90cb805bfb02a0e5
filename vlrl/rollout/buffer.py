"""Which samples are generated, waited for and trained: the one state machine that owns a run's slots.

    0, 1, 2, …: positions of the endless sequence of samples; each becomes a ticket when it is admitted.

    new ──admit──► RUNNING ──finish──► DONE ──cut──► consumed
                    │  ▲ │               │
               lose │  │ └─drop──► failed, filtered
                    ▼  │ admit           │ stale: its oldest token is too old for the batch being cut
                   QUEUED ◄──────────────┘

Consumes: positions in order, and their outcomes in any order. Waits for: the ticket at the head, as
batches are cut in the order of positions; so the samples trained, and their order, do not hang on what ends
first. Unblocked by: the head's end; or, of tickets ahead of the weights, by `advance`.

A ticket holds one slot from its first admission until it is consumed, failed or filtered. One that is
redone keeps its slot: had it to ask for another, tickets behind it could hold all of them, waiting for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from vlrl.config import Config
from vlrl.errors import InternalError

T = TypeVar("T")


class State(StrEnum):
    """State of a ticket that holds a slot."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


@dataclass(slots=True)
class Ticket(Generic[T]):
    """A position of the sequence of samples, on its way into a batch.

    Attributes:
        position: in the sequence; sample and seeds are functions of it.
        state: where it is.
        version: of the weights when it was last admitted.
        oldest_version: that any of its tokens was generated under, once it is done.
        payload: what was generated, once it is done.
        row: that an adaptive sampler chose at its first admission; None if the position alone decides.
    """

    position: int
    state: State
    version: int
    oldest_version: int = 0
    payload: T | None = None
    row: int | None = None


class RowChooser(Protocol):
    """An adaptive sampler, see `vlrl.data.curriculum.choice`: rows of positions by the outcomes of others."""

    def is_ready(self, position: int) -> bool:
        """Whether all that a position's row follows from is known."""

    def choose(self, position: int) -> int | None:
        """The row of a position; asked once for each, in order."""

    def ahead(self, first: int, num: int) -> dict[int, int]:
        """Rows of positions that are admitted next, as far as they are known."""

    def settle(self, position: int, row: int | None, outcome: Any) -> None:
        """Take the outcome of a position, which may be generated several times."""

    def metrics(self) -> dict[str, float]:
        """Numbers to log."""

    def state(self) -> dict[str, Any]:
        """Arrays by name, for a checkpoint."""


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """Limits of a buffer.

    Attributes:
        batch_size: tickets of a batch, at least 1.
        pipeline_depth: batches' worth of slots, at least 1; a batch's come back when it is cut, so 1
        generates
            the next batch while the last one trains.
        max_staleness: most updates between the oldest token of a ticket and the batch that trains it. With 0
            the next batch is generated when the last one has been trained: synchronous training.
        over_sampling: tickets admitted for each one that a batch needs, at least 1, as some are filtered.
        num_ahead: positions after the admitted ones whose rows are given as soon as they are known.
    """

    batch_size: int
    pipeline_depth: int = 1
    max_staleness: int = 0
    over_sampling: float = 1.0
    num_ahead: int = 0

    @classmethod
    def of(cls, config: Config) -> BufferLimits:
        """A run's: in synchronous training a batch is generated when the one before has been trained."""
        streams = config.asynchronous.streams
        return cls(
            config.rollout.prompts_per_step,
            pipeline_depth=config.asynchronous.pipeline_depth if streams else 1,
            max_staleness=config.asynchronous.max_staleness if streams else 0,
            over_sampling=config.batch.over_sampling,
            num_ahead=config.data.prefetch_steps * config.rollout.prompts_per_step,
        )

    @property
    def tickets_per_batch(self) -> int:
        """Admitted for a batch."""
        return math.ceil(self.batch_size * self.over_sampling)

    @property
    def num_credits(self) -> int:
        """Most tickets at once."""
        return self.pipeline_depth * self.tickets_per_batch


@dataclass(frozen=True, slots=True)
class Cut(Generic[T]):
    """A batch, in the order of positions; `counts` of what happened since the last one, see `Buffer`."""

    tickets: tuple[Ticket[T], ...]
    counts: Counter[str] = field(default_factory=Counter)


class Buffer(Generic[T]):
    """Tickets by position; T is what a finished one carries.

    Batch k is trained under weight version k and makes version k + 1.

    Attributes:
        limits: what it lets happen.
        version: of the newest weights that tickets are generated under.
        num_cut: batches cut; the next one is trained under this version.
        counts: tickets `consumed`, `stale`, `lost`, and dropped by reason, since the last cut.
        rows: chooses the rows of positions; None if they follow from the positions alone.
    """

    def __init__(self, limits: BufferLimits, *, num_cut: int = 0, rows: RowChooser | None = None) -> None:
        """Begin with batch num_cut, at the position where it begins if no ticket is ever dropped."""
        self.limits, self.rows = limits, rows
        self.version = self.num_cut = num_cut
        self.counts: Counter[str] = Counter()
        self._next_position = num_cut * limits.batch_size
        self._open: dict[int, Ticket[T]] = {}  # in the order of positions: tickets are redone in place

    def __len__(self) -> int:
        return len(self._open)

    def num_in(self, state: State) -> int:
        """Tickets in a state."""
        return sum(ticket.state is state for ticket in self._open.values())

    def admit(self) -> list[Ticket[T]]:
        """Every ticket that may run now, oldest position first; they are running from here on."""
        admitted: list[Ticket[T]] = []
        for rank, ticket in enumerate(self._open.values()):
            if ticket.state is State.QUEUED and self._is_timely(rank):
                ticket.state, ticket.version = State.RUNNING, self.version
                admitted.append(ticket)
        while len(self._open) < self.limits.num_credits and self._is_timely(len(self._open)):
            if self.rows is not None and not self.rows.is_ready(self._next_position):
                break
            ticket = Ticket(self._next_position, State.RUNNING, self.version)
            if self.rows is not None:
                ticket.row = self.rows.choose(self._next_position)
            self._open[ticket.position] = ticket
            self._next_position += 1
            admitted.append(ticket)
        return admitted

    def rows_ahead(self) -> dict[int, int]:
        """Rows that an adaptive sampler has chosen for positions that are not admitted yet."""
        return {} if self.rows is None else self.rows.ahead(self._next_position, self.limits.num_ahead)

    def finish(self, position: int, payload: T, oldest_version: int | None = None) -> None:
        """A running ticket is generated; oldest_version None: all of it under the version it began with."""
        ticket = self._running(position)
        ticket.state, ticket.payload = State.DONE, payload
        ticket.oldest_version = ticket.version if oldest_version is None else oldest_version

    def drop(self, position: int, reason: str) -> None:
        """A running ticket is not to be trained: it failed, or was filtered. Another will take its place."""
        del self._open[self._running(position).position]
        self.counts[reason] += 1

    def lose(self, position: int) -> None:
        """The process that generated a running ticket has died: it is generated again from the same seeds."""
        self._running(position).state = State.QUEUED
        self.counts["lost"] += 1

    def advance(self, version: int) -> None:
        """Tickets are generated under these weights from now on."""
        if not self.version <= version <= self.num_cut:
            raise InternalError(
                f"weights {version} cannot follow {self.version}: {self.num_cut} batches were trained"
            )
        self.version = version

    def cut(self) -> Cut[T] | None:
        """The next batch, None if one of its tickets is not done. No token in it is older than the limit."""
        for ticket in self._open.values():
            if (
                ticket.state is State.DONE
                and self.num_cut - ticket.oldest_version > self.limits.max_staleness
            ):
                ticket.state, ticket.payload = State.QUEUED, None
                self.counts["stale"] += 1
        head = tuple(islice(self._open.values(), self.limits.batch_size))
        if len(head) < self.limits.batch_size or any(ticket.state is not State.DONE for ticket in head):
            return None
        for ticket in head:
            del self._open[ticket.position]
        self.num_cut += 1
        counts, self.counts = self.counts + Counter(consumed=len(head)), Counter()
        return Cut(head, counts)

    def snapshot(self) -> dict[str, Any]:
        """The ledger of samples as plain JSON values, but for the payloads.

        Every position below `next_position` that is not open was consumed or dropped.
        """
        tickets = [[t.position, t.state.value, t.oldest_version] for t in self._open.values()]
        rows = {str(t.position): t.row for t in self._open.values() if t.row is not None}
        found = {"num_cut": self.num_cut, "next_position": self._next_position, "open": tickets}
        return {**found, "rows": rows} if rows else found

    def payloads(self) -> dict[int, T]:
        """What finished tickets carry, by position."""
        return {t.position: t.payload for t in self._open.values() if t.payload is not None}

    @classmethod
    def restore(
        cls,
        limits: BufferLimits,
        snapshot: Mapping[str, Any],
        payloads: Mapping[int, T],
        rows: RowChooser | None = None,
    ) -> Buffer[T]:
        """The buffer of a `snapshot`; tickets that ran, or whose payload is missing, are to be redone.

        The batch size may be another one.
        """
        buffer = cls(limits, num_cut=snapshot["num_cut"], rows=rows)
        buffer._next_position = snapshot["next_position"]
        for position, _, oldest_version in snapshot["open"]:
            row = snapshot.get("rows", {}).get(str(position))
            ticket: Ticket[T] = Ticket(position, State.QUEUED, buffer.version, row=row)
            if position in payloads:
                ticket.state, ticket.payload = State.DONE, payloads[position]
                ticket.oldest_version = oldest_version
            buffer._open[position] = ticket
        return buffer

    def _is_timely(self, rank: int) -> bool:
        """Whether the ticket of that rank among the open ones, begun now, is fresh when its batch is cut."""
        batch = self.num_cut + rank // self.limits.tickets_per_batch
        return batch - self.version <= self.limits.max_staleness

    def _running(self, position: int) -> Ticket[T]:
        ticket = self._open.get(position)
        if ticket is None or ticket.state is not State.RUNNING:
            state = "no ticket" if ticket is None else ticket.state.value
            raise InternalError(f"sample position {position} is not running but {state}")
        return ticket
