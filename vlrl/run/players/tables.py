"""A step's rollouts as tables: each outcome's by whoever has its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from vlrl.batch import TokenValues
from vlrl.protocols import Processor
from vlrl.storage.shared_folder import SharedFile
from vlrl.tracking.rollouts.records import encoded_images, images_of, write_images
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


@dataclass(frozen=True, slots=True)
class Tabulated:
    """Some outcomes' groups as a table.

    Attributes:
        table: see `vlrl.tracking.rollouts.table`.
        images: PNGs by path in the run's folder, of a host that does not see it; others have written theirs.
    """

    table: pa.Table
    images: Mapping[str, bytes] = field(default_factory=dict)


def tabulated(
    of_outcomes: Sequence[Sequence[Group]],
    numbers: Sequence[OutcomeNumbers],
    values: TokenValues,
    processor: Processor,
    run_dir: Path,
    run_file: SharedFile | None = None,
) -> Tabulated:
    """The table of some outcomes' groups, whose images are written if this host sees the run's folder.

    Args:
        of_outcomes: groups of each, media with frames.
        numbers: of each.
        values: what the trainer computed.
        processor: spells the tokens.
        run_dir: where the images' folder is.
        run_file: a file of the driver's in it; None is the driver itself.
    """
    groups = [group for of_outcome in of_outcomes for group in of_outcome]
    places = [p for n, of in zip(numbers, of_outcomes, strict=True) for p in n.place(of)]
    table = rollout_table(groups, places, processor, values)
    if run_file is not None and not run_file.is_here:
        return Tabulated(table, encoded_images(images_of(groups)))
    write_images(run_dir, images_of(groups))
    return Tabulated(table)
