"""Branches to one packed sequence: every node of their prefix tree once, one after the other, no padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.batch import MediaInputs, MicroBatch, TrainedTokens
from vlrl.ledger import IntArray, Ledger
from vlrl.packing.prefix_tree import Branch, Identity, distinct, grow, identity, preorder
from vlrl.packing.targets import Actions, targets_of
from vlrl.types import Media

PixelsFn = Callable[[Sequence[Media]], MediaInputs]
SILENCE = Media("audio", "silence", np.zeros((3200, 2), np.uint8), (0, 0), (1, 1, 0), 0, fps=16000.0)
"""Runs through a rank's audio tower where another rank has an audio, and stands in no prompt."""


def media_themselves(media: Sequence[Media]) -> tuple[Media, ...]:
    """A pixel function that leaves the vision tower's arrays to the ranks."""
    return tuple(media)


@dataclass(slots=True)
class _Sequence:
    """Nodes in preorder: tokens [3 + 1, num_tokens], how far each is seen, and where each branch lies."""

    input_ids: IntArray
    position_ids: IntArray
    seen_until: npt.NDArray[np.int32]
    media: list[Media]
    media_starts: IntArray
    places: dict[Branch, IntArray]
    policy_ids: IntArray | None = None
    routed_experts: npt.NDArray[np.int16] | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Images, by identity, that other micro-batches of the same rank and step show.

    Attributes:
        before: in earlier ones.
        later: in later ones.
        runs_ahead: whether the tower is to run ahead in this micro-batch, on any rank.
        runs: whether it is to run in this micro-batch at all, on any rank.
        hears_ahead: whether an audio is among what runs ahead, on any rank.
        hears: whether one is among what runs here, on any rank.
    """

    before: Set[Identity] = frozenset()
    later: Set[Identity] = frozenset()
    runs_ahead: bool = False
    runs: bool = True
    hears_ahead: bool = False
    hears: bool = False


ALONE = Elsewhere()


@dataclass(frozen=True, slots=True)
class Slice:
    """Tokens [start, end) of a sequence, for one of the ranks that share it.

    Attributes:
        sample_ids: of the sequence's branches.
        lengths: tokens of every rank's slice.
        actions: of the branches.
    """

    sequence: _Sequence
    targets: TrainedTokens[npt.NDArray[Any]]
    start: int
    end: int
    sample_ids: tuple[str, ...]
    lengths: tuple[int, ...]
    actions: Actions

    @property
    def media(self) -> list[Media]:
        """What is shown in it, in order."""
        starts = self.sequence.media_starts
        inside = np.flatnonzero((self.start <= starts) & (starts < self.end))
        return [self.sequence.media[number] for number in inside]

    @property
    def shown(self) -> dict[Identity, Media]:
        """Each of them once."""
        return distinct(self.media)

    def micro_batch(self, pixels: PixelsFn, elsewhere: Elsewhere = ALONE) -> MicroBatch:
        """What its rank computes.

        Args:
            pixels: the processor's pixel function, or `media_themselves`.
            elsewhere: images that need not run here; by default this micro-batch is for itself.
        """
        sequence, targets, shown = self.sequence, self.targets, self.shown
        numbers = {key: number for number, key in enumerate(shown)}
        here = [key for key in shown if key not in elsewhere.later]
        ahead = [key for key in shown if key in elsewhere.later and key not in elsewhere.before]
        mine = (self.start <= targets.source_index) & (targets.source_index < self.end)
        own = {name: array[mine] for name, array in targets.trained_tokens().items()}

        def inputs(keys: Sequence[Identity], hears: bool) -> MediaInputs:
            """Silence comes last, where another rank has an audio and this one has none."""
            media = [shown[key] for key in keys]
            silent = hears and not any(medium.kind == "audio" for medium in media)
            return pixels([*media, SILENCE] if silent else media)

        return MicroBatch(
            input_ids=sequence.input_ids[self.start : self.end],
            position_ids=sequence.position_ids[:, self.start : self.end],
            seen_until=sequence.seen_until,
            media_inputs=inputs(here, elsewhere.hears) if elsewhere.runs else None,
            media_keys=tuple("/".join(map(str, key)) for key in shown),
            media_order=np.array([numbers[identity(m)] for m in self.media], np.int64),
            media_here=np.array([numbers[key] for key in here], np.int64),
            media_ahead=np.array([numbers[key] for key in ahead], np.int64),
            ahead_inputs=inputs(ahead, elsewhere.hears_ahead) if elsewhere.runs_ahead else None,
            media_parts=np.array([m.grid_thw[0] for m in shown.values()], np.int64),
            **{**own, "source_index": own["source_index"] - self.start},
            token_sample_ids=self.sample_ids,
            slice_lengths=self.lengths,
            policy_ids=self._of(sequence.policy_ids),
            routed_experts=self._of(sequence.routed_experts),
            actions=self.actions.actions,
            action_forms=self.actions.action_forms,
            forms=self.actions.forms,
        )

    def _of(self, tokens: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
        """This slice of an array of the sequence's tokens, if there is one."""
        return None if tokens is None else tokens[self.start : self.end]


def slices_of(branches: Sequence[Branch], version: int | None = None, num_slices: int = 1) -> list[Slice]:
    """Write branches into one sequence; none gives ignored tokens alone, so that ranks stay in step.

    Args:
        branches: in the order in which their trained tokens are listed.
        version: of the weights this step begins with; None: all tokens are fresh.
        num_slices: ranks that share the sequence; there is a slice for each.
    """
    sequence = _sequence_of(branches)
    targets = targets_of(branches, sequence.places, version)
    edges = _edges(sequence, num_slices)
    lengths = tuple(after - before for before, after in pairwise(edges))
    sample_ids = tuple(branch.sample_id for branch in branches)
    actions = Actions.of(branches)
    return [
        Slice(sequence, targets, start, end, sample_ids, lengths, actions) for start, end in pairwise(edges)
    ]


def _edges(sequence: _Sequence, num_slices: int) -> list[int]:
    """Where slices begin and end: as even as whole images allow, none of them empty.

    A sequence that cannot be cut so often gets ignored tokens at its end.
    """
    size = len(sequence.input_ids)
    free = np.ones(size, bool)
    free[:1] = False
    for medium, start in zip(sequence.media, sequence.media_starts.tolist(), strict=True):
        free[start + 1 : start + medium.num_tokens] = False
    cuts: list[int] = []
    for number in range(1, num_slices):
        wanted, last = size * number // num_slices, cuts[-1] if cuts else 0
        allowed = np.flatnonzero(free[last + 1 :]) + last + 1
        # Those that come after this one need places, too.
        allowed = allowed[: len(allowed) - (num_slices - 1 - number)]
        if not len(allowed):
            _add_ignored(sequence, num_slices)
            return _edges(sequence, num_slices)
        cuts.append(int(allowed[np.abs(allowed - wanted).argmin()]))
    return [0, *cuts, size]


def _add_ignored(sequence: _Sequence, count: int) -> None:
    """Tokens that see nothing, are seen by nobody, and predict nothing."""
    ends = np.arange(len(sequence.input_ids), len(sequence.input_ids) + count) + 1
    sequence.input_ids = np.append(sequence.input_ids, np.zeros(count, np.int64))
    sequence.position_ids = np.append(sequence.position_ids, np.zeros((3, count), np.int64), axis=1)
    sequence.seen_until = np.append(sequence.seen_until, ends.astype(np.int32))
    if sequence.policy_ids is not None:
        sequence.policy_ids = np.append(sequence.policy_ids, np.full(count, -1))
    if sequence.routed_experts is not None:
        unknown = np.full((count, *sequence.routed_experts.shape[1:]), -1, np.int16)
        sequence.routed_experts = np.concatenate([sequence.routed_experts, unknown])


def _sequence_of(branches: Sequence[Branch]) -> _Sequence:
    if not branches:
        nothing = np.zeros(1, np.int64)
        none = np.zeros(0, np.int64)
        return _Sequence(nothing, np.zeros((3, 1), np.int64), np.ones(1, np.int32), [], none, {})
    nodes = list(preorder(grow(branches)))
    sizes = np.array([node.end - node.start for node, _ in nodes])
    begins = np.cumsum(sizes) - sizes
    ends = begins + sizes  # of whole subtrees, once children are added to their parents
    for number in range(len(nodes) - 1, 0, -1):
        parent = nodes[number][1]
        ends[parent] = max(ends[parent], ends[number])
    paths: list[IntArray] = []
    places: dict[Branch, IntArray] = {}
    for (node, parent), begin in zip(nodes, begins, strict=True):
        before = paths[parent] if parent >= 0 else np.zeros(0, np.int64)
        paths.append(np.concatenate([before, begin + np.arange(node.end - node.start)]))
        places |= {branch: paths[-1] for branch in node.ending}
    spans = [(node.branch.ledger, slice(node.start, node.end)) for node, _ in nodes]
    shown = [
        (medium, begin + start - node.start)
        for (node, _), begin in zip(nodes, begins.tolist(), strict=True)
        for medium, start in node.media
    ]
    return _Sequence(
        input_ids=np.concatenate([ledger.token_ids[span] for ledger, span in spans]),
        position_ids=np.concatenate([ledger.position_ids[:, span] for ledger, span in spans], axis=1),
        seen_until=np.repeat(ends, sizes).astype(np.int32),
        media=[medium for medium, _ in shown],
        media_starts=np.array([start for _, start in shown], np.int64),
        places=places,
        policy_ids=_policy_ids([node.branch for node, _ in nodes], sizes),
        routed_experts=_routed_experts(spans),
    )


def _policy_ids(branches: Sequence[Branch], sizes: IntArray) -> IntArray | None:
    """The policy of each token, of nodes of these branches and sizes; None where there is one."""
    policies = [branch.policy for branch in branches if branch.policy is not None]
    return np.repeat(np.array(policies, np.int64), sizes) if len(policies) == len(branches) else None


def _routed_experts(spans: Sequence[tuple[Ledger, slice]]) -> npt.NDArray[np.int16] | None:
    """The choices of experts for the tokens of these nodes; None if there are none for any."""
    of_nodes = [None if of.routed_experts is None else of.routed_experts[span] for of, span in spans]
    known = next((rows for rows in of_nodes if rows is not None), None)
    if known is None:
        return None
    found = []
    for rows, (_, span) in zip(of_nodes, spans, strict=True):
        whole = np.full((span.stop - span.start, *known.shape[1:]), -1, np.int16)
        if rows is not None:
            whole[: len(rows)] = rows
        found.append(whole)
    return np.concatenate(found)
