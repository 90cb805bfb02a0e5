"""Groups to micro-batches: prefixes shared, work balanced over ranks, tokens weighted for the loss."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from vlrl.batch import Batch
from vlrl.errors import DataError
from vlrl.ledger import IntArray
from vlrl.packing.branches import branches_of, counted, numbered, policies_of
from vlrl.packing.layout import Elsewhere, PixelsFn, Slice, slices_of
from vlrl.packing.options import PackOptions
from vlrl.packing.prefix_tree import Branch, Identity, Keys, distinct, grow, preorder
from vlrl.packing.token_weights import weights_by_policy
from vlrl.types import Group

# What a pair of attention and a pixel cost in tokens through the language model, in a model of 3 to 7 billion
# parameters. They only deal out work: a wrong one makes a rank wait, never a wrong number.
PAIRS_PER_TOKEN = 8192
PIXELS_PER_TOKEN = 784

MIN_SHARE = 0.1
"""Ledgers are kept together if that saves this share of their tokens; else they may go to different ranks."""
MIN_GAIN = 0.8
"""A tree is cut for balance if the slowest rank then takes less than this share of its time."""


@dataclass(frozen=True, slots=True)
class PackUnit:
    """Branches that go to one micro-batch together.

    Attributes:
        branches: of one tree.
        num_tokens: of the tree.
        num_pixels: that the vision tower takes in.
        cost: estimate, in tokens through the language model.
    """

    branches: tuple[Branch, ...]
    num_tokens: int
    num_pixels: int
    cost: float


def pack(
    groups: Sequence[Group],
    pixels: PixelsFn,
    options: PackOptions,
    version: int | None = None,
    first_group: int = 0,
) -> Batch:
    """Lay groups out for one optimizer step.

    Args:
        groups: with credits; members whose credit does not count are left out (law 7).
        pixels: the processor's pixel function.
        options: sizes, and how tokens are averaged.
        version: of the weights this step begins with, which staleness is counted from; None: all tokens are
            fresh.
        first_group: number of the first one among those that the whole step trains.

    Returns:
        [num_ranks][num_micro_batches] of MicroBatch.

    Raises:
        DataError: for a group that must be in one micro-batch and is larger.
    """
    num_ranks, max_tokens = options.num_ranks, options.max_tokens
    is_whole = options.aggregation == "group"
    groups = counted(groups)
    policies = policies_of(groups, options.policies)
    weights = weights_by_policy(groups, policies, options)
    keys = Keys()
    branches: list[Branch] = []
    for number, (group, group_weights, policy) in enumerate(zip(groups, weights, policies, strict=True)):
        of_group = branches_of(
            group,
            group_weights,
            keys,
            number if is_whole else None,
            policy,
            first_group + number if options.keeps_origins else None,
            options.restricts,
        )
        if options.keep_zero_advantage or any(b.advantages[b.trained].any() for b in of_group):
            branches += of_group
    if options.numbers_steps:
        branches = numbered(branches, groups)
    per_group = [
        [
            [branch for unit in bin_ for branch in unit.branches]
            for bin_ in fill(units, max_tokens, options.max_pixels)
        ]
        for units in (deal_groups if is_whole else _deal)(
            branches, num_ranks // options.sequence_parallel, max_tokens
        )
    ]
    num_micro_batches = max(1, *(len(bins) for bins in per_group))
    order = {branch: number for number, branch in enumerate(branches)}
    ranks: list[list[Slice]] = []
    for bins in per_group:
        bins += [[]] * (num_micro_batches - len(bins))
        cut = [
            slices_of(sorted(bin_, key=order.__getitem__), version, options.sequence_parallel)
            for bin_ in bins
        ]
        ranks += [list(of_rank) for of_rank in zip(*cut, strict=True)]
    return [
        [part.micro_batch(pixels, others) for part, others in zip(parts, of_rank, strict=True)]
        for parts, of_rank in zip(ranks, _elsewhere(ranks, options), strict=True)
    ]


def _elsewhere(ranks: Sequence[Sequence[Slice]], options: PackOptions) -> list[list[Elsewhere]]:
    """What the other micro-batches of each rank show: [num_ranks][num_micro_batches]."""
    shown = [[set(part.shown) for part in parts] for parts in ranks]
    others = shown if options.images_once else [[] for _ in shown]
    found = [
        [
            (set[Identity]().union(*of_rank[:i]), set[Identity]().union(*of_rank[i + 1 :]))
            for i in range(len(shown[0]))
        ]
        for of_rank in others
    ]
    # One rank's tower runs, or runs ahead: all ranks' do, on a blank image if need be, or they wait forever.
    columns = list(enumerate(zip(*found, strict=True)))
    ahead = [
        set[Identity]().union(*((shown[rank][i] & later) - before for rank, (before, later) in enumerate(of)))
        for i, of in columns
    ]
    here = [
        set[Identity]().union(*(shown[rank][i] - later for rank, (_, later) in enumerate(of)))
        for i, of in columns
    ]

    def of_micro_batch(i: int, before: Set[Identity], later: Set[Identity]) -> Elsewhere:
        runs = options.tower_always or bool(ahead[i] or here[i])
        return Elsewhere(before, later, bool(ahead[i]), runs, _hears(ahead[i]), _hears(here[i]))

    return [[of_micro_batch(i, *media) for i, media in enumerate(of_rank)] for of_rank in found]


def _hears(media: Set[Identity]) -> bool:
    return any(kind == "audio" for kind, _, _ in media)


class Tree:
    """Branches in the order of their tree; a unit is a run of neighbours, from one branch to another.

    What each shares with the one before it is known once, so that tokens and pairs of any run are differences
    of running sums, and nothing is measured again when runs are joined.
    """

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches: list[Branch] = []
        nodes, begins, shared = list(preorder(grow(branches))), list[int](), list[int]()
        for node, _ in nodes:
            begins.append(len(self._branches))
            shared += [node.end] * len(node.ending)
            self._branches += node.ending
        ends = begins.copy()
        for number in range(len(nodes) - 1, -1, -1):
            node, parent = nodes[number]
            ends[number] = max(ends[number], begins[number] + len(node.ending))
            if parent >= 0:
                ends[parent] = max(ends[parent], ends[number])
                if begins[number] > begins[parent] and begins[number] < len(shared):
                    shared[begins[number]] = nodes[parent][0].end
        if shared:
            shared[0] = 0
        self._nodes = [(node.end, *ends_of) for (node, _), *ends_of in zip(nodes, begins, ends, strict=True)]
        self._lengths = np.array([branch.keys.shape[1] for branch in self._branches], np.int64)
        self._own = np.cumsum(self._lengths - np.array(shared, np.int64))
        self._own_pairs = np.cumsum(_pairs(self._lengths) - _pairs(np.array(shared, np.int64)))

    def units(self, max_tokens: int) -> list[PackUnit]:
        """Those together that are worth it and fit: decided at every node, from the leaves to the root."""
        if not self._branches:
            return []
        begins = np.ones(len(self._branches), bool)
        for num_shared, begin, end in reversed(self._nodes):
            firsts = begin + np.flatnonzero(begins[begin:end])
            sizes = self._num_tokens(firsts, np.append(firsts[1:], end) - 1)
            if not worth_sharing(num_shared, sizes):
                continue
            if not (sizes[1:] + sizes[:-1] - num_shared <= max_tokens).any():
                continue  # nothing fits, which the loop would find out one by one
            used = max_tokens + 1
            for first, size in zip(firsts.tolist(), sizes.tolist(), strict=True):
                fits = used + size - num_shared <= max_tokens
                begins[first] = not fits
                used = used + size - num_shared if fits else size
        firsts = np.flatnonzero(begins)
        return self._units(firsts, np.append(firsts[1:], len(begins)) - 1)

    def whole(self) -> PackUnit:
        """All branches together, however large."""
        return self._units(np.array([0]), np.array([len(self._branches) - 1]))[0]

    def _units(self, firsts: IntArray, lasts: IntArray) -> list[PackUnit]:
        """Runs of branches."""
        tokens = self._num_tokens(firsts, lasts).tolist()
        pairs = (_pairs(self._lengths[firsts]) + self._own_pairs[lasts] - self._own_pairs[firsts]).tolist()
        return [
            self._unit(*of_one) for of_one in zip(firsts.tolist(), lasts.tolist(), tokens, pairs, strict=True)
        ]

    def _num_tokens(self, firsts: IntArray, lasts: IntArray) -> IntArray:
        """Number of tokens of runs of branches: [num_runs]."""
        return self._lengths[firsts] + self._own[lasts] - self._own[firsts]

    def _unit(self, first: int, last: int, num_tokens: int, num_pairs: int) -> PackUnit:
        branches = self._branches[first : last + 1]
        shown = distinct([m for b in branches for m in b.ledger.media[: b.num_media]])
        num_pixels = sum(math.prod(medium.frames.shape[:3]) for medium in shown.values())
        cost = num_tokens + num_pairs / PAIRS_PER_TOKEN + num_pixels / PIXELS_PER_TOKEN
        return PackUnit(tuple(branches), num_tokens, num_pixels, cost)


def _pairs(lengths: IntArray) -> IntArray:
    """Pairs of a query and a key that it sees, in paths of so many tokens."""
    return lengths * (lengths + 1) // 2


def worth_sharing(num_shared: int, sizes: Sequence[int] | IntArray) -> bool:
    """Whether parts of these sizes are kept together for the tokens that they share."""
    return num_shared * (len(sizes) - 1) >= MIN_SHARE * int(np.sum(sizes))


def _deal(branches: Sequence[Branch], num_ranks: int, max_tokens: int) -> list[list[PackUnit]]:
    """The units of each rank. Large ones are cut smaller only if that spares the slowest rank much."""
    tree = Tree(branches)
    best = deal(tree.units(max_tokens), num_ranks)
    num_tokens = sum(unit.num_tokens for of_one in best for unit in of_one)
    for parts in (num_ranks, 2 * num_ranks, 4 * num_ranks) if num_ranks > 1 else ():
        finer = deal(tree.units(min(max_tokens, num_tokens // parts)), num_ranks)
        if _slowest(finer) < MIN_GAIN * _slowest(best):
            best = finer
    return best


def deal_groups(branches: Sequence[Branch], num_ranks: int, max_tokens: int) -> list[list[PackUnit]]:
    """The units of each rank, where each group is one.

    Raises:
        DataError: for a group of more tokens than a micro-batch has.
    """
    units = [Tree(list(of_group)).whole() for _, of_group in groupby(branches, key=lambda b: b.group)]
    for unit in units:
        if unit.num_tokens > max_tokens:
            raise DataError(
                f"sample {unit.branches[0].sample_id!r}: its prompt and all of its completions have "
                f"{unit.num_tokens} tokens, and must be in one micro-batch of {max_tokens}; raise "
                "trainer.max_tokens_per_micro_batch, or lower processor.max_pixels"
            )
    return deal(units, num_ranks)


def _slowest(ranks: Sequence[Sequence[PackUnit]]) -> float:
    return max(sum(unit.cost for unit in of_one) for of_one in ranks)


def deal(units: Sequence[PackUnit], num_ranks: int) -> list[list[PackUnit]]:
    """Costliest first, each to the rank with the least work so far."""
    ranks: list[list[PackUnit]] = [[] for _ in range(num_ranks)]
    loads = [0.0] * num_ranks
    for unit in sorted(units, key=lambda u: -u.cost):
        rank = loads.index(min(loads))
        ranks[rank].append(unit)
        loads[rank] += unit.cost
    return ranks


def fill(units: Sequence[PackUnit], max_tokens: int, max_pixels: int | None) -> list[list[PackUnit]]:
    """A rank's micro-batches: each unit into the first that has room, costliest first.

    The ranks meet in every micro-batch, so all ranks do their costliest one at the same time.
    """
    bins: list[list[PackUnit]] = []
    limits = np.array([max_tokens, np.inf if max_pixels is None else max_pixels])
    left = np.zeros((len(units), 2))  # tokens and pixels that each bin has room for
    for unit in units:
        size = np.array([unit.num_tokens, unit.num_pixels])
        room = np.flatnonzero((left[: len(bins)] >= size).all(axis=1))
        if len(room):
            bins[room[0]].append(unit)
            left[room[0]] -= size
        else:
            left[len(bins)] = limits - size
            bins.append([unit])
    return sorted(bins, key=lambda of_one: -sum(unit.cost for unit in of_one))
