"""Groups to micro-batches: every prompt once, its completions as branches, tokens weighted for the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from vlrl.batch import Batch, MicroBatch
from vlrl.ledger import BoolArray, FloatArray, Ledger
from vlrl.types import Group, Media

Aggregation = Literal["token", "sequence", "constant"]
PixelsFn = Callable[[Sequence[Media]], Mapping[str, npt.NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class Branch:
    """One ledger of a tree with the advantages of its tokens and the weight of each one that is trained."""

    sample_id: str
    ledger: Ledger
    advantages: FloatArray
    trained: BoolArray
    token_weight: float

    @property
    def num_prefix(self) -> int:
        """Tokens before the first action."""
        return self.ledger.turns[0].context[1]

    @property
    def prefix_media(self) -> tuple[Media, ...]:
        """Media before the first action."""
        return self.ledger.media[: self.ledger.turns[0].num_media]


@dataclass(frozen=True, slots=True)
class Tree:
    """A shared prompt of `num_prefix` tokens and the ledgers that go on from it."""

    num_prefix: int
    branches: tuple[Branch, ...]

    @property
    def num_tokens(self) -> int:
        """Tokens of the laid-out tree."""
        return self.num_prefix + sum(len(b.ledger.token_ids) - self.num_prefix for b in self.branches)

    @property
    def media(self) -> list[Media]:
        """The prompt's once, then what each branch saw after it."""
        prompt = self.branches[0].prefix_media
        return [*prompt, *(m for b in self.branches for m in b.ledger.media[len(prompt) :])]

    @property
    def num_pixels(self) -> int:
        """Pixels that the vision tower takes in."""
        return sum(m.frames[..., 0].size for m in self.media)


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
) -> Batch:
    """Lay groups out for one optimizer step.

    Args:
        groups: scored, with credits; failed groups are left out and do not count (law 7).
        pixels: the processor's pixel function.
        num_ranks: data-parallel ranks; each gets the same number of micro-batches.
        max_tokens: token slots of a micro-batch, padding included; a longer tree is split by branches.
        aggregation: the averaging rule, see `token_weights`.
        max_completion_tokens: Dr. GRPO's constant.
        keep_zero_advantage: train trees whose advantages are all zero. They add nothing to the policy
            gradient, so they may be left out exactly; only a KL term needs them. They count in the
            averages either way.
        max_pixels: of a micro-batch's media; a tree that has more goes alone. None is no limit.

    Returns:
        [num_ranks][num_micro_batches] of MicroBatch.
    """
    counted = [g for g in groups if not g.failed]
    weights = token_weights(counted, aggregation, max_completion_tokens)
    trees: list[Tree] = []
    for group, group_weights in zip(counted, weights, strict=True):
        for branches in _by_prefix(group, group_weights):
            if keep_zero_advantage or any(b.advantages[b.trained].any() for b in branches):
                trees += _split(branches, max_tokens)
    per_rank = [_bins(rank_trees, max_tokens, max_pixels) for rank_trees in _deal(trees, num_ranks)]
    num_micro_batches = max(1, *(len(bins) for bins in per_rank))
    return [
        [_lay_out(bins[i] if i < len(bins) else [], pixels) for i in range(num_micro_batches)]
        for bins in per_rank
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


def _by_prefix(group: Group, weights: Sequence[float]) -> list[list[Branch]]:
    """The ledgers of a group, those that begin with the same tokens and media together."""
    found: dict[tuple[bytes, tuple[str, ...]], list[Branch]] = {}
    for trajectory, credit, weight in zip(group.trajectories, group.credits, weights, strict=True):
        for ledger, advantages, trained in zip(
            trajectory.ledgers, credit.advantages, credit.trained, strict=True
        ):
            branch = Branch(trajectory.sample.id, ledger, advantages, trained, weight)
            prefix = ledger.token_ids[: branch.num_prefix].tobytes()
            found.setdefault((prefix, tuple(m.sha256 for m in branch.prefix_media)), []).append(branch)
    return list(found.values())


def _split(branches: Sequence[Branch], max_tokens: int) -> list[Tree]:
    """One tree, or several that repeat the prompt, each within max_tokens where a single branch allows."""
    num_prefix = branches[0].num_prefix
    trees: list[Tree] = []
    current: list[Branch] = []
    used = num_prefix
    for branch in branches:
        size = len(branch.ledger.token_ids) - num_prefix
        if current and used + size > max_tokens:
            trees.append(Tree(num_prefix, tuple(current)))
            current, used = [], num_prefix
        current.append(branch)
        used += size
    return [*trees, Tree(num_prefix, tuple(current))]


def _deal(trees: Sequence[Tree], num_ranks: int) -> list[list[Tree]]:
    """Longest first, each to the rank with the fewest tokens so far."""
    ranks: list[list[Tree]] = [[] for _ in range(num_ranks)]
    loads = [0] * num_ranks
    for tree in sorted(trees, key=lambda t: -t.num_tokens):
        rank = loads.index(min(loads))
        ranks[rank].append(tree)
        loads[rank] += tree.num_tokens
    return ranks


def _bins(trees: Sequence[Tree], max_tokens: int, max_pixels: int | None) -> list[list[Tree]]:
    """Cut a longest-first list into micro-batches whose padded size and pixels stay within the limits."""
    bins: list[list[Tree]] = []
    num_pixels = 0  # of the last bin
    for tree in trees:
        fits = bool(bins) and bins[-1][0].num_tokens * (len(bins[-1]) + 1) <= max_tokens
        if fits and (max_pixels is None or num_pixels + tree.num_pixels <= max_pixels):
            bins[-1].append(tree)
            num_pixels += tree.num_pixels
        else:
            bins.append([tree])
            num_pixels = tree.num_pixels
    return bins


def _lay_out(trees: Sequence[Tree], pixels: PixelsFn) -> MicroBatch:
    """Write trees into rows; no trees gives a row of one ignored token, so that ranks stay in step."""
    length = max([t.num_tokens for t in trees], default=1)
    num_rows = max(1, len(trees))
    input_ids = np.zeros((num_rows, length), dtype=np.int64)
    position_ids = np.zeros((3, num_rows, length), dtype=np.int64)
    branch_ids = np.full((num_rows, length), -1, dtype=np.int32)
    media: list[Media] = []
    sources, targets, logprobs, advantages, weights, owners = [], [], [], [], [], []
    for row, tree in enumerate(trees):
        prefix = tree.num_prefix
        first = tree.branches[0].ledger
        input_ids[row, :prefix] = first.token_ids[:prefix]
        position_ids[:, row, :prefix] = first.position_ids[:, :prefix]
        branch_ids[row, :prefix] = 0
        media += tree.media
        cursor = prefix
        for number, branch in enumerate(tree.branches, start=1):
            ledger = branch.ledger
            end = cursor + len(ledger.token_ids) - prefix
            input_ids[row, cursor:end] = ledger.token_ids[prefix:]
            position_ids[:, row, cursor:end] = ledger.position_ids[:, prefix:]
            branch_ids[row, cursor:end] = number
            trained = np.flatnonzero(branch.trained)
            place = trained - prefix + cursor
            # A branch's first token is predicted by the prompt's last, the others by their neighbour.
            sources.append(row * length + np.where(trained == prefix, prefix - 1, place - 1))
            targets.append(ledger.token_ids[trained])
            logprobs.append(ledger.sampler_logprobs[trained])
            advantages.append(branch.advantages[trained])
            weights.append(np.full(len(trained), branch.token_weight, np.float32))
            owners.append(np.full(len(trained), row, np.int64))
            cursor = end
    return MicroBatch(
        input_ids=input_ids,
        position_ids=position_ids,
        branch_ids=branch_ids,
        media_inputs=pixels(media),
        num_media=len(media),
        source_index=np.concatenate([np.zeros(0, np.int64), *sources]),
        target_ids=np.concatenate([np.zeros(0, np.int64), *targets]),
        sampler_logprobs=np.concatenate([np.zeros(0, np.float32), *logprobs]),
        advantages=np.concatenate([np.zeros(0, np.float32), *advantages]),
        weights=np.concatenate([np.zeros(0, np.float32), *weights]),
        token_rows=np.concatenate([np.zeros(0, np.int64), *owners]),
        token_sample_ids=tuple(t.branches[0].sample_id for t in trees),
    )
