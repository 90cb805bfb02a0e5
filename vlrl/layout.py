"""Branches to one packed sequence: every node of their prefix tree once, one after the other, no padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.batch import MicroBatch
from vlrl.ledger import IntArray
from vlrl.prefix_tree import Branch, Identity, distinct, grow, identity, preorder
from vlrl.types import Media

PixelsFn = Callable[[Sequence[Media]], Mapping[str, npt.NDArray[Any]]]


@dataclass(slots=True)
class _Sequence:
    """Nodes in preorder: tokens [3 + 1, num_tokens], how far each is seen, and where each branch lies."""

    input_ids: IntArray
    position_ids: IntArray
    seen_until: npt.NDArray[np.int32]
    media: list[Media]
    places: dict[Branch, IntArray]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Pictures, by identity, that other micro-batches of the same rank and step show.

    Attributes:
        before: in earlier ones.
        later: in later ones.
        runs_ahead: whether the tower is to run ahead in this micro-batch, on any rank.
    """

    before: Set[Identity] = frozenset()
    later: Set[Identity] = frozenset()
    runs_ahead: bool = False


def lay_out(
    branches: Sequence[Branch],
    pixels: PixelsFn,
    version: int | None = None,
    elsewhere: Elsewhere = Elsewhere(),
) -> MicroBatch:
    """Write branches into one sequence; none gives one ignored token, so that ranks stay in step.

    Args:
        branches: in the order in which their trained tokens are listed.
        pixels: the processor's pixel function.
        version: of the weights this step begins with; None: all lags are 0.
        elsewhere: pictures that need not run here; by default this micro-batch is for itself.
    """
    sequence = _sequence_of(branches)
    shown = distinct(sequence.media)
    numbers = {key: number for number, key in enumerate(shown)}
    here = [key for key in shown if key not in elsewhere.later]
    ahead = [key for key in shown if key in elsewhere.later and key not in elsewhere.before]
    trained = [np.flatnonzero(b.trained) for b in branches]
    counts = [len(t) for t in trained]
    drawn_under = [b.ledger.versions[t] for b, t in zip(branches, trained, strict=True)]
    lags = [np.zeros_like(v) if version is None else version - v for v in drawn_under]
    # A token is predicted where the one before it on its path stands.
    sources = [sequence.places[b][t - 1] for b, t in zip(branches, trained, strict=True)]
    return MicroBatch(
        input_ids=sequence.input_ids,
        position_ids=sequence.position_ids,
        seen_until=sequence.seen_until,
        media_inputs=pixels([shown[key] for key in here]),
        media_keys=tuple("/".join(map(str, key)) for key in shown),
        media_order=np.array([numbers[identity(m)] for m in sequence.media], np.int64),
        media_here=np.array([numbers[key] for key in here], np.int64),
        media_ahead=np.array([numbers[key] for key in ahead], np.int64),
        ahead_inputs=pixels([shown[key] for key in ahead]) if elsewhere.runs_ahead else None,
        media_parts=np.array([m.grid_thw[0] for m in shown.values()], np.int64),
        source_index=_joined(sources, np.int64),
        target_ids=_joined([b.ledger.token_ids[t] for b, t in zip(branches, trained, strict=True)], np.int64),
        sampler_logprobs=_joined(
            [b.ledger.sampler_logprobs[t] for b, t in zip(branches, trained, strict=True)], np.float32
        ),
        advantages=_joined([b.advantages[t] for b, t in zip(branches, trained, strict=True)], np.float32),
        weights=np.repeat(np.array([b.token_weight for b in branches], np.float32), counts),
        version_lags=_joined(lags, np.int64),
        sequence_ids=np.repeat(np.arange(len(branches), dtype=np.int64), counts),
        token_sample_ids=tuple(b.sample_id for b in branches),
    )


def _sequence_of(branches: Sequence[Branch]) -> _Sequence:
    if not branches:
        nothing = np.zeros(1, np.int64)
        return _Sequence(nothing, np.zeros((3, 1), np.int64), np.ones(1, np.int32), [], {})
    nodes = list(preorder(grow(branches)))
    sizes = np.array([node.end - node.start for node, _ in nodes])
    begins = np.cumsum(sizes) - sizes
    ends = begins + sizes  # of whole subtrees, once children have told their parents
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
    return _Sequence(
        input_ids=np.concatenate([ledger.token_ids[span] for ledger, span in spans]),
        position_ids=np.concatenate([ledger.position_ids[:, span] for ledger, span in spans], axis=1),
        seen_until=np.repeat(ends, sizes).astype(np.int32),
        media=[medium for node, _ in nodes for medium in node.media],
        places=places,
    )


def _joined(pieces: Sequence[npt.NDArray[Any]], dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *pieces])
