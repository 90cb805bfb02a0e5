"""Ledgers with a common beginning as one tree: their shared tokens are one node."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.ledger import BoolArray, FloatArray, IntArray, Ledger
from vlrl.types import Media

Identity: TypeAlias = tuple[Any, ...]
"""Of an image or video, see `identity`."""


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One ledger with the advantages of its tokens and the weight of each one that is trained.

    Attributes:
        sample_id: for error messages.
        ledger: the tokens.
        advantages: [num_tokens] float32.
        trained: [num_tokens] bool.
        token_weight: of each trained token in the batch's loss.
        keys: [5, num_inputs] int32, see `Keys`; two ledgers share a token if they share all keys up to it.
        group: number of its group where all of a group must be in one micro-batch; None where it need not.
        steps: [num_tokens, 3] int64, see `vlrl.batch.TrainedTokens`; None without a critic.
        policy: number of the policy that generated it; None where there is one.
        origin: number of its group, index of its trajectory, its number in that; None where nobody asks.
        restricts: whether forms of its actions count, see `PackOptions`.
    """

    sample_id: str
    ledger: Ledger
    advantages: FloatArray
    trained: BoolArray
    token_weight: float
    keys: npt.NDArray[np.int32]
    group: int | None = None
    steps: IntArray | None = None
    policy: int | None = None
    origin: tuple[int, int, int] | None = None
    restricts: bool = False

    @property
    def has_forms(self) -> bool:
        """Whether tokens were impossible in some action, and that counts."""
        return self.restricts and any(turn.form for turn in self.ledger.turns)

    @property
    def num_media(self) -> int:
        """Media that begin in its inputs."""
        return bisect_left(self.ledger.media_starts, self.keys.shape[1])


class Keys:
    """What makes two tokens the same: id, the three positions, and the medium that begins there.

    A medium's whole placeholder follows from its first token, so no tree forks inside of one. The policy is
    told apart at the first token, since all that follows is computed with its adapter.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[Any, ...], int] = {}

    def of(self, ledger: Ledger, trained: BoolArray, policy: int | None = None) -> npt.NDArray[np.int32]:
        """[5, num_inputs] int32: id, time, height, width, number of the medium (0 for none).

        The inputs are the tokens before the last trained one: it is predicted, and what follows is not.
        """
        num_inputs = int(np.flatnonzero(trained)[-1])
        of_tokens = np.zeros((num_inputs, 5), np.int32)  # a token's side by side: `grow` sorts by their bytes
        of_tokens[:, 0] = ledger.token_ids[:num_inputs]
        of_tokens[:, 1:4] = ledger.position_ids[:, :num_inputs].T
        for medium, start in zip(ledger.media, ledger.media_starts, strict=True):
            # One that begins later still has a number. Several begin at one place only where tests leave
            # placeholders out: their numbers differ.
            place = of_tokens[start : start + 1, 4]
            name = (int(place.sum()), identity(medium))
            place[:] = self._names.setdefault(name, len(self._names) + 1)
        if policy is not None:
            name = (int(of_tokens[:1, 4].sum()), ("policy", policy))
            of_tokens[:1, 4] = self._names.setdefault(name, len(self._names) + 1)
        keys: npt.NDArray[np.int32] = of_tokens.T
        return keys


@dataclass(slots=True, eq=False)
class TreeNode:
    """Tokens [start, end) of a branch's ledger, which all branches beneath have in common.

    Attributes:
        branch: any of those beneath; gives the tokens.
        start: tokens before it on its path.
        end: tokens up to and with it.
        ending: the branches that end here.
        children: how the others go on, by the first token's keys.
    """

    branch: Branch
    start: int
    end: int
    ending: list[Branch] = field(default_factory=list)
    children: dict[tuple[int, ...], TreeNode] = field(default_factory=dict)

    @property
    def media(self) -> list[tuple[Media, int]]:
        """What is shown in its tokens, and the place on its path at which each begins."""
        ledger = self.branch.ledger
        first, last = (bisect_left(ledger.media_starts, place) for place in (self.start, self.end))
        return list(zip(ledger.media[first:last], ledger.media_starts[first:last], strict=True))

    def fork(self, place: int) -> None:
        """Cut in two at `place`, so that another way can begin there."""
        rest = TreeNode(self.branch, place, self.end, self.ending, self.children)
        self.end, self.ending = place, []
        self.children = {_key(self.branch, place): rest}


def grow(branches: Sequence[Branch]) -> TreeNode:
    """The tree of some branches: a root without tokens, forks as late as the keys allow.

    Sorted by their keys, branches that share tokens are neighbours, and what two neighbours share is where
    the second one leaves the first one's path: the work is linear in the tokens, however deep the tree is.
    Children are in the order in which the branches came, and so is what ends at a node.
    """
    root = TreeNode(branches[0], 0, 0) if branches else _nothing()
    number = {branch: place for place, branch in enumerate(branches)}
    path, before = [root], None
    for branch in sorted(branches, key=lambda each: each.keys.T.tobytes()):
        _append(path, branch, 0 if before is None else _num_shared(before, branch))
        before = branch
    _order(root, number)
    return root


def _append(path: list[TreeNode], branch: Branch, num_shared: int) -> None:
    """Put a branch beside the one before it, which ends the path, and make it end the path."""
    left = None
    while path[-1].end > num_shared:
        left = path.pop()
    if left is not None and path[-1].end < num_shared:
        left.fork(num_shared)
        path.append(left)
    if (num_tokens := branch.keys.shape[1]) > num_shared:
        child = TreeNode(branch, num_shared, num_tokens)
        path[-1].children[_key(branch, num_shared)] = child
        path.append(child)
    path[-1].ending.append(branch)


def _order(root: TreeNode, number: dict[Branch, int]) -> None:
    """Put children and endings into the order of the branches; a node's own is the first one beneath it."""
    first: dict[int, int] = {}
    for node, _ in reversed(list(preorder(root))):
        node.ending.sort(key=number.__getitem__)
        node.children = dict(sorted(node.children.items(), key=lambda each: first[id(each[1])]))
        beneath = [number[branch] for branch in node.ending[:1]]
        beneath += [first[id(child)] for child in islice(node.children.values(), 1)]
        first[id(node)] = min(beneath, default=0)
    branches = list(number)
    for node, _ in preorder(root):
        if branches:
            node.branch = branches[first[id(node)]]


def _num_shared(first: Branch, second: Branch) -> int:
    """Tokens with which both begin."""
    end = min(first.keys.shape[1], second.keys.shape[1])
    same = (first.keys[:, :end] == second.keys[:, :end]).all(axis=0)
    return end if same.all() else int(same.argmin())


def _key(branch: Branch, place: int) -> tuple[int, ...]:
    return tuple(branch.keys[:, place].tolist())


def _nothing() -> TreeNode:
    empty = np.zeros(0, np.float32)
    ledger = Ledger(empty.astype(np.int64), np.zeros((3, 0), np.int64), empty > 0, empty, (), (), ())
    return TreeNode(Branch("", ledger, empty, empty > 0, 0.0, np.zeros((5, 0), np.int32)), 0, 0)


def preorder(root: TreeNode) -> Iterator[tuple[TreeNode, int]]:
    """Every node before those beneath it, a child's whole subtree before the next child.

    Returns:
        Pairs of a node and its parent's number in this order, -1 for the root.
    """
    waiting, number = [(root, -1)], 0
    while waiting:
        node, parent = waiting.pop()
        yield node, parent
        waiting += [(child, number) for child in reversed(node.children.values())]
        number += 1


def num_pairs(node: TreeNode) -> int:
    """Pairs of a query in the node and a key that it sees."""
    count = node.end - node.start
    return count * node.start + count * (count + 1) // 2


def distinct(media: Sequence[Media]) -> dict[Identity, Media]:
    """Each image once, in the order in which they first occur; a group's members often see the same."""
    return {identity(medium): medium for medium in media}


def identity(medium: Media) -> Identity:
    """Media of the same identity are the same to the model."""
    return medium.kind, medium.sha256, medium.grid_thw
