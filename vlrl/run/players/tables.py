"""A step's rollouts as tables: each outcome's by whoever has its groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from vlrl.batch import TokenValues
from vlrl.protocols import Processor
from vlrl.tracking.rollouts.records import images_of, write_images
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table
from vlrl.types import Group


@dataclass(frozen=True, slots=True)
class OutcomeNumbers:
    """How the groups of an outcome are numbered in a step's table.

    Attributes:
        step: of the table.
        position: of the outcome's ticket.
        first_kept: number of its first group that is trained; the others follow.
        first_refused: of its first group that a filter refused.
        is_replayed: whether an earlier step generated it.
    """

    step: int
    position: int | None
    first_kept: int
    first_refused: int
    is_replayed: bool = False

    def place(self, groups: Sequence[Group]) -> list[RolloutPlace]:
        """The place of each of its groups."""
        kept, refused, places = self.first_kept, self.first_refused, list[RolloutPlace]()
        for group in groups:
            number = refused if group.refusal else kept
            places.append(RolloutPlace(self.step, self.position, number, self.is_replayed))
            kept, refused = kept + (not group.refusal), refused + bool(group.refusal)
        return places


def tabulated(
    of_outcomes: Sequence[Sequence[Group]],
    numbers: Sequence[OutcomeNumbers],
    values: TokenValues,
    processor: Processor,
    run_dir: Path,
) -> pa.Table:
    """The table of some outcomes' groups, whose images are written beside it.

    Args:
        of_outcomes: groups of each, media with frames.
        numbers: of each.
        values: what the trainer computed.
        processor: spells the tokens.
        run_dir: where the images' folder is.
    """
    groups = [group for of_outcome in of_outcomes for group in of_outcome]
    places = [p for n, of in zip(numbers, of_outcomes, strict=True) for p in n.place(of)]
    write_images(run_dir, images_of(groups))
    return rollout_table(groups, places, processor, values)
