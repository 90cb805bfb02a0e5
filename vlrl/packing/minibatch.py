"""One optimizer step of a batch: which of its groups, with which advantages."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.algorithm.normalize import batch_normalized
from vlrl.batch import Batch
from vlrl.packing.layout import media_themselves
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group


def packed_part(groups: Sequence[Group], part: slice, options: PackOptions, version: int) -> Batch:
    """One optimizer step of a batch: a part of those of its groups that no filter refused.

    The media are left to the ranks. Advantages are normalised over the batch.
    """
    groups = [group for group in groups if not group.refusal]
    chosen = part_of(groups, part, options)
    first, _, _ = part.indices(len(groups))
    return pack(chosen, media_themselves, options, version, first)


def part_of(groups: Sequence[Group], part: slice, options: PackOptions) -> Sequence[Group]:
    """The groups of one optimizer step, of all those of a batch; advantages are normalised over the batch."""
    if options.normalize != "batch":
        return groups[part]
    normalized = list(groups)
    policies = [options.policies.get(group.agent) for group in groups]
    for policy in set(policies):  # each by itself
        mine = [number for number, each in enumerate(policies) if each == policy]
        for number, group in zip(mine, batch_normalized([groups[n] for n in mine]), strict=True):
            normalized[number] = group
    return normalized[part]
