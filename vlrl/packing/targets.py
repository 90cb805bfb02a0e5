"""The trained tokens of a packed sequence: an array for everything that the loss takes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.batch import TrainedTokens
from vlrl.ledger import IntArray
from vlrl.packing.prefix_tree import Branch


def targets_of(
    branches: Sequence[Branch], places: Mapping[Branch, IntArray], version: int | None
) -> TrainedTokens[npt.NDArray[Any]]:
    """What the loss takes of each trained token.

    Args:
        branches: in the order in which their tokens are listed.
        places: [num_tokens] for each, where its tokens stand in the sequence.
        version: of the weights this step begins with; None: all tokens are fresh.
    """
    trained = [np.flatnonzero(b.trained) for b in branches]
    pairs = list(zip(branches, trained, strict=True))
    versions = [b.ledger.versions[t] for b, t in pairs]
    staleness = [np.zeros_like(v) if version is None else version - v for v in versions]
    counts = [len(t) for t in trained]
    return TrainedTokens(
        # A token is predicted where the one before it on its path stands.
        source_index=_joined([places[b][t - 1] for b, t in pairs], np.int64),
        target_ids=_joined([b.ledger.token_ids[t] for b, t in pairs], np.int64),
        sampler_logprobs=_joined([b.ledger.sampler_logprobs[t] for b, t in pairs], np.float32),
        advantages=_joined([b.advantages[t] for b, t in pairs], np.float32),
        weights=np.repeat(np.array([b.token_weight for b in branches], np.float32), counts),
        token_staleness=_joined(staleness, np.int64),
        sequence_ids=np.repeat(np.arange(len(branches), dtype=np.int64), counts),
        group_ids=_group_ids(branches, counts),
        steps=_steps(pairs),
        origins=_origins(pairs),
        action_places=_action_places(pairs),
    )


def _steps(pairs: Sequence[tuple[Branch, IntArray]]) -> IntArray | None:
    """Where trained tokens are in their episodes, [M, 3]; None where nobody asks."""
    if any(branch.steps is None for branch, _ in pairs):
        return None
    of_branches = [branch.steps[t] for branch, t in pairs if branch.steps is not None]
    found: IntArray = np.concatenate([np.zeros((0, 3), np.int64), *of_branches])
    return found


def _origins(pairs: Sequence[tuple[Branch, IntArray]]) -> IntArray | None:
    """Which tokens of the step's rollouts the trained ones are, [M, 4]; None where nobody asks."""
    if any(branch.origin is None for branch, _ in pairs):
        return None
    of_branches = [
        np.column_stack([np.broadcast_to(branch.origin, (len(t), 3)), t])
        for branch, t in pairs
        if branch.origin is not None
    ]
    found: IntArray = np.concatenate([np.zeros((0, 4), np.int64), *of_branches])
    return found


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions of ledgers, as `vlrl.batch.MicroBatch` has them; none where none has a form."""

    actions: tuple[IntArray, ...] = ()
    action_forms: tuple[int, ...] = ()
    forms: tuple[str, ...] = ()

    @classmethod
    def of(cls, branches: Sequence[Branch]) -> Actions:
        """Those of all these ledgers, one after the other."""
        if not any(branch.has_forms for branch in branches):
            return cls()
        pairs = [(branch.ledger, turn) for branch in branches for turn in branch.ledger.turns]
        numbers = {form: number for number, form in enumerate(dict.fromkeys(turn.form for _, turn in pairs))}
        actions = tuple(ledger.token_ids[slice(*turn.action)] for ledger, turn in pairs)
        return cls(actions, tuple(numbers[turn.form] for _, turn in pairs), tuple(numbers))


def _action_places(pairs: Sequence[tuple[Branch, IntArray]]) -> IntArray | None:
    """Which of `Actions` trained tokens are of, and where in it, [M, 2]; None where none has a form."""
    if not any(branch.has_forms for branch, _ in pairs):
        return None
    found, num_before = [np.zeros((0, 2), np.int64)], 0
    for branch, trained in pairs:
        starts = np.array([turn.action[0] for turn in branch.ledger.turns], np.int64)
        number = np.searchsorted(starts, trained, side="right") - 1
        found.append(np.column_stack([num_before + number, trained - starts[number]]))
        num_before += len(starts)
    return np.concatenate(found)


def _group_ids(branches: Sequence[Branch], counts: Sequence[int]) -> IntArray | None:
    """The groups of trained tokens, counted in the order in which they first occur."""
    if any(branch.group is None for branch in branches):
        return None
    numbers = {group: number for number, group in enumerate(dict.fromkeys(b.group for b in branches))}
    return np.repeat(np.array([numbers[branch.group] for branch in branches], np.int64), counts)


def _joined(pieces: Sequence[npt.NDArray[Any]], dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *pieces])
