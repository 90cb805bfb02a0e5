"""Results of tickets: numbers for the driver, and the groups to be trained or references to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vlrl.algorithm.filters import NamedFilter, first_refusal
from vlrl.scoring.compose import RewardFailure
from vlrl.tracking.group_numbers import GroupNumbers
from vlrl.types import Group

EMPTY = "empty"
"""What a ticket without a group is counted under: too few of its episodes ended in time."""


@dataclass(slots=True)
class TicketOutcome:
    """The outcome of a ticket.

    Attributes:
        kept: numbers of its groups that are to be trained; several if its episodes have several agents.
        dropped: of those that a filter refused.
        groups: all of them, scored, with credit, and the filter that refused one (`Group.refusal`); or a
            reference, see `vlrl.run.players.workers`.
        reason: the first filter that refused a group, or EMPTY.
        oldest_version: of the weights that generated any token of the kept groups; None without tokens.
        row: number of the sample's row in its source; None if its rows have no numbers.
        position: of the ticket in the run's sequence of samples; None of one that is replayed.
    """

    kept: tuple[GroupNumbers, ...]
    dropped: tuple[GroupNumbers, ...]
    groups: Any
    reason: str = EMPTY
    oldest_version: int | None = None
    row: int | None = None
    position: int | None = None

    @property
    def signal(self) -> float:
        """Mean |advantage| of the kept groups' trained tokens, of the group where it is largest; 0: none."""
        return max((group.signal for group in self.kept), default=0.0)

    @property
    def sample_id(self) -> str | None:
        """What was asked; None if nothing is left to train."""
        return next((group.sample_id for group in self.kept if group.sample_id is not None), None)


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of some tickets.

    Attributes:
        outcomes: one a ticket, in order.
        failures: of scoring.
        counts: of what happened to episodes, see `vlrl.rollout.groups.RolloutResult`.
        rows: what was dropped on the way to the samples, by metric.
        seconds: by part of a step's time.
    """

    outcomes: list[TicketOutcome]
    failures: list[RewardFailure] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def joined(cls, played: Sequence[tuple[Round, Sequence[int]]], positions: Sequence[int]) -> Round:
        """Rounds of some positions each as one, its outcomes in the order of `positions`."""
        rounds = [round_ for round_, _ in played]
        outcomes = {p: o for round_, of in played for p, o in zip(of, round_.outcomes, strict=True)}
        parts = {part for round_ in rounds for part in round_.seconds}
        return cls(
            [outcomes[position] for position in positions],
            [failure for round_ in rounds for failure in round_.failures],
            summed_counts(round_.counts for round_ in rounds),
            summed_counts(round_.rows for round_ in rounds),
            {part: max(round_.seconds.get(part, 0.0) for round_ in rounds) for part in parts},
        )


def summed_counts(counters: Iterable[Counter[str]]) -> Counter[str]:
    """Their sum, with the zeros that `+` leaves out."""
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def outcome_of(
    groups: Sequence[Group],
    filters: Sequence[NamedFilter] = (),
    row: int | None = None,
    untrained: Collection[str] = (),
) -> TicketOutcome:
    """The outcome of a ticket whose groups are scored and have credit, once filters have judged them.

    Those of `untrained` agents, which a frozen policy plays, are kept beside any that is kept to be trained.
    """
    judged = [
        None if group.agent in untrained else group.refusal or first_refusal(group, filters)
        for group in groups
    ]
    others = [refusal for group, refusal in zip(groups, judged, strict=True) if group.agent not in untrained]
    beside = None if None in others else next(iter(others), EMPTY)
    refusals = [
        beside if group.agent in untrained else refusal for group, refusal in zip(groups, judged, strict=True)
    ]
    for group, refusal in zip(groups, refusals, strict=True):
        group.refusal = refusal or ""
    kept = [group for group, refusal in zip(groups, refusals, strict=True) if refusal is None]
    dropped = [group for group, refusal in zip(groups, refusals, strict=True) if refusal is not None]
    return TicketOutcome(
        kept=tuple(map(GroupNumbers.of, kept)),
        dropped=tuple(map(GroupNumbers.of, dropped)),
        groups=list(groups),
        reason=next((refusal for refusal in refusals if refusal is not None), EMPTY),
        oldest_version=oldest_version(kept),
        row=row,
    )


def oldest_version(groups: Sequence[Group]) -> int | None:
    """Oldest version of the weights that generated any of their tokens; None if nothing was generated."""
    ledgers = [ledger for group in groups for t in group.trajectories for ledger in t.ledgers]
    return min((span.version for ledger in ledgers for span in ledger.version_spans), default=None)
