"""Groups to micro-batches: what ledgers share once, the work dealt evenly, tokens weighted for the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vlrl.batch import Batch
from vlrl.layout import ALONE, Elsewhere, PixelsFn, Slice, slices_of
from vlrl.prefix_tree import Branch, Identity, Keys, Node, distinct, grow, num_pairs, preorder
from vlrl.types import Group

Aggregation = Literal["token", "sequence", "constant"]

# What a pair of attention and a pixel cost in tokens through the language model, in a model of 3 to 7 billion
# parameters. They only deal out work: a wrong one makes a rank wait, never a wrong number.
PAIRS_PER_TOKEN = 8192
PIXELS_PER_TOKEN = 784

MIN_SHARE = 0.1
"""Ledgers are kept together if that saves this share of their tokens; else they may go to different ranks."""
MIN_GAIN = 0.8
"""A tree is cut for balance if the slowest rank then takes less than this share of its time."""


@dataclass(frozen=True, slots=True)
class Unit:
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

    @classmethod
    def of(cls, branches: Sequence[Branch]) -> Unit:
        """Measure some branches."""
        nodes = [node for node, _ in preorder(grow(branches))]
        num_tokens = sum(node.end - node.start for node in nodes)
        shown = distinct([medium for node in nodes for medium, _ in node.media])
        num_pixels = sum(medium.frames[..., 0].size for medium in shown.values())
        pairs = sum(map(num_pairs, nodes))
        cost = num_tokens + pairs / PAIRS_PER_TOKEN + num_pixels / PIXELS_PER_TOKEN
        return cls(tuple(branches), num_tokens, num_pixels, cost)


def pack(
    groups: Sequence[Group],
    pixels: PixelsFn,
    *,
    num_ranks: int,
    max_tokens: int,
    aggregation: Aggregation,
    max_completion_tokens: int,
    keep_zero_advantage: bool,
    max_pixels: int | None = None,
    version: int | None = None,
    pictures_once: bool = False,
    sequence_parallel: int = 1,
) -> Batch:
    """Lay groups out for one optimizer step.

    Args:
        groups: with credits; members whose credit does not count are left out (law 7).
        pixels: the processor's pixel function.
        num_ranks: of the trainer; each gets the same number of micro-batches.
        max_tokens: of a micro-batch; a tree of more is split and its shared tokens repeated, and only a
            single ledger may exceed it.
        aggregation: the averaging rule, see `token_weights`.
        max_completion_tokens: Dr. GRPO's constant.
        keep_zero_advantage: train groups whose advantages are all zero. They add nothing to the policy
            gradient, so they may be left out exactly; only terms of KL and entropy need them. They count
            in the averages either way.
        max_pixels: of a micro-batch's media; a tree that has more goes alone. None is no limit.
        version: of the weights this step begins with, which tokens' lags are counted from; None: all are 0.
        pictures_once: a picture that several micro-batches of a rank show runs through the tower with
            gradient once; they must then be computed in order, with one `StepFeatures`. Else each
            micro-batch is for itself.
        sequence_parallel: ranks in a row that get a slice each of the same micro-batches.

    Returns:
        [num_ranks][num_micro_batches] of MicroBatch.
    """
    groups = counted(groups)
    weights = token_weights(groups, aggregation, max_completion_tokens)
    keys = Keys()
    branches: list[Branch] = []
    for group, group_weights in zip(groups, weights, strict=True):
        of_group = branches_of(group, group_weights, keys)
        if keep_zero_advantage or any(b.advantages[b.trained].any() for b in of_group):
            branches += of_group
    per_group = [
        [
            [branch for unit in bin_ for branch in unit.branches]
            for bin_ in fill(units, max_tokens, max_pixels)
        ]
        for units in _deal(branches, num_ranks // sequence_parallel, max_tokens)
    ]
    num_micro_batches = max(1, *(len(bins) for bins in per_group))
    order = {branch: number for number, branch in enumerate(branches)}
    ranks: list[list[Slice]] = []
    for bins in per_group:
        bins += [[]] * (num_micro_batches - len(bins))
        cut = [slices_of(sorted(bin_, key=order.__getitem__), version, sequence_parallel) for bin_ in bins]
        ranks += [list(of_rank) for of_rank in zip(*cut, strict=True)]
    elsewhere = _elsewhere(ranks) if pictures_once else [[ALONE] * num_micro_batches] * num_ranks
    return [
        [part.micro_batch(pixels, others) for part, others in zip(parts, of_rank, strict=True)]
        for parts, of_rank in zip(ranks, elsewhere, strict=True)
    ]


def counted(groups: Sequence[Group]) -> list[Group]:
    """The members of each group whose credit counts."""
    found = []
    for group in groups:
        members = [pair for pair in zip(group.trajectories, group.credits, strict=True) if pair[1].counts]
        found.append(Group([t for t, _ in members], [credit for _, credit in members]))
    return found


def _elsewhere(ranks: Sequence[Sequence[Slice]]) -> list[list[Elsewhere]]:
    """What the other micro-batches of each rank show: [num_ranks][num_micro_batches]."""
    shown = [[set(part.shown) for part in parts] for parts in ranks]
    found = [
        [
            (set[Identity]().union(*of_rank[:i]), set[Identity]().union(*of_rank[i + 1 :]))
            for i in range(len(of_rank))
        ]
        for of_rank in shown
    ]
    # One rank's tower runs ahead: all ranks' do, on a blank picture if need be, or they wait forever.
    ahead = [
        any((shown[rank][i] & later) - before for rank, (before, later) in enumerate(column))
        for i, column in enumerate(zip(*found, strict=True))
    ]
    return [
        [Elsewhere(before, later, ahead[i]) for i, (before, later) in enumerate(of_rank)] for of_rank in found
    ]


def token_weights(
    groups: Sequence[Group], aggregation: Aggregation, max_completion_tokens: int
) -> list[list[float]]:
    """Weight of each trained token of each trajectory, [num_groups][n].

    "token": 1 / Σ|o| over the batch (DAPO, arXiv 2503.14476, Eq. 8). "sequence": 1 / (N·|o_i|) for N
    sequences (GRPO, arXiv 2402.03300, Eq. 3). "constant": 1 / (N·max_completion_tokens) (Dr. GRPO, arXiv
    2503.20783, §3.2).
    """
    lengths = [[credit.num_trained for credit in g.credits] for g in groups]
    num_sequences = max(1, sum(len(row) for row in lengths))
    num_tokens = max(1, sum(sum(row) for row in lengths))
    if aggregation == "token":
        return [[1.0 / num_tokens for _ in row] for row in lengths]
    if aggregation == "sequence":
        return [[1.0 / (num_sequences * max(1, n)) for n in row] for row in lengths]
    return [[1.0 / (num_sequences * max_completion_tokens) for _ in row] for row in lengths]


def branches_of(group: Group, weights: Sequence[float], keys: Keys) -> list[Branch]:
    """A group's ledgers that have trained tokens: [n] weights of a trajectory's trained tokens."""
    return [
        Branch(trajectory.sample.id, ledger, advantages, trained, weight, keys.of(ledger, trained))
        for trajectory, credit, weight in zip(group.trajectories, group.credits, weights, strict=True)
        for ledger, advantages, trained in zip(
            trajectory.ledgers, credit.advantages, credit.trained, strict=True
        )
        if trained.any()
    ]


def _units(node: Node, max_tokens: int) -> list[Unit]:
    """The branches beneath a node, those together that are worth it and fit."""
    parts = [Unit.of([branch]) for branch in node.ending]
    parts += [unit for child in node.children.values() for unit in _units(child, max_tokens)]
    if not worth_sharing(node.end, [part.num_tokens for part in parts]):
        return parts
    units: list[list[Unit]] = []
    used = 0
    for part in parts:
        if units and used + part.num_tokens - node.end <= max_tokens:
            units[-1].append(part)
            used += part.num_tokens - node.end
        else:
            units.append([part])
            used = part.num_tokens
    return [u[0] if len(u) == 1 else Unit.of([b for part in u for b in part.branches]) for u in units]


def worth_sharing(num_shared: int, sizes: Sequence[int]) -> bool:
    """Whether parts of these sizes are kept together for the tokens that they share."""
    return num_shared * (len(sizes) - 1) >= MIN_SHARE * sum(sizes)


def _deal(branches: Sequence[Branch], num_ranks: int, max_tokens: int) -> list[list[Unit]]:
    """The units of each rank. Large ones are cut smaller only if that spares the slowest rank much."""
    tree = grow(branches)
    best = deal(_units(tree, max_tokens), num_ranks)
    num_tokens = sum(unit.num_tokens for of_one in best for unit in of_one)
    for parts in (num_ranks, 2 * num_ranks, 4 * num_ranks) if num_ranks > 1 else ():
        finer = deal(_units(tree, min(max_tokens, num_tokens // parts)), num_ranks)
        if _slowest(finer) < MIN_GAIN * _slowest(best):
            best = finer
    return best


def _slowest(ranks: Sequence[Sequence[Unit]]) -> float:
    return max(sum(unit.cost for unit in of_one) for of_one in ranks)


def deal(units: Sequence[Unit], num_ranks: int) -> list[list[Unit]]:
    """Costliest first, each to the rank with the least work so far."""
    ranks: list[list[Unit]] = [[] for _ in range(num_ranks)]
    loads = [0.0] * num_ranks
    for unit in sorted(units, key=lambda u: -u.cost):
        rank = loads.index(min(loads))
        ranks[rank].append(unit)
        loads[rank] += unit.cost
    return ranks


def fill(units: Sequence[Unit], max_tokens: int, max_pixels: int | None) -> list[list[Unit]]:
    """A rank's micro-batches: each unit into the first that has room, costliest first.

    The ranks meet in every micro-batch, so all ranks do their costliest one at the same time.
    """
    bins: list[list[Unit]] = []
    for unit in units:
        for found in bins:
            num_tokens = sum(u.num_tokens for u in found) + unit.num_tokens
            num_pixels = sum(u.num_pixels for u in found) + unit.num_pixels
            if num_tokens <= max_tokens and (max_pixels is None or num_pixels <= max_pixels):
                found.append(unit)
                break
        else:
            bins.append([unit])
    return sorted(bins, key=lambda of_one: -sum(unit.cost for unit in of_one))
