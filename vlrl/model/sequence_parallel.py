"""Ranks that share one sequence: each has a slice of its tokens, and in attention a share of the heads.

DeepSpeed-Ulysses (Jacobs et al., arXiv 2309.14509, §3.1) for packed prefix trees, whose slices may differ in
length:

    tokens split, all heads ──all-to-all──► all tokens, heads split ──attention, all-to-all──► tokens split

A slice has whole images, so the vision tower is split by image. What ranks compute of the loss adds up as
that of data-parallel ranks does: every trained token is in one slice, with its weight in the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.nn.functional import all_to_all_single

from vlrl.algorithm.ordered import sums_by
from vlrl.errors import ConfigError
from vlrl.model.tree_attention import TreeAttention


def require_heads(text_config: Any, size: int) -> None:
    """Raise ConfigError if a language model's heads, by its config, cannot be shared out evenly."""
    for kind, name in (("attention", "num_attention_heads"), ("delta rule", "linear_num_value_heads")):
        num_heads = getattr(text_config, name, None) or 0
        if num_heads % size:
            raise ConfigError(
                f"trainer.sequence_parallel={size} does not divide the language model's {num_heads} {kind} "
                "heads; give a divisor of them"
            )


def join_group(size: int) -> dist.ProcessGroup | None:
    """This rank's group: `size` ranks in a row share a sequence. Every rank must call it; None for 1."""
    if size == 1:
        return None
    mine: dist.ProcessGroup | None = None
    for start in range(0, dist.get_world_size(), size):
        ranks = list(range(start, start + size))
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = group
    return mine


def shared_sums(group: dist.ProcessGroup, values: Tensor, sequence_ids: Tensor) -> Tensor:
    """`vlrl.algorithm.off_policy.sequence_sums` of sequences whose tokens lie in the slices of several ranks.

    Every rank of the group must call it, also one without tokens.

    Args:
        group: the ranks.
        values: [M] of this rank's tokens, without gradient.
        sequence_ids: [M] int64, the same numbers on all of them.
    """
    num_sequences = sequence_ids.max() + 1 if len(sequence_ids) else sequence_ids.new_zeros(())
    dist.all_reduce(num_sequences, dist.ReduceOp.MAX, group)
    sums = sums_by(sequence_ids, values, int(num_sequences))
    dist.all_reduce(sums, dist.ReduceOp.SUM, group)
    return sums[sequence_ids]


def later_sums(group: dist.ProcessGroup, values: Tensor, sequence_ids: Tensor) -> Tensor:
    """Every token's sum over its sequence in the slices of later ranks; arguments as in `shared_sums`.

    A slice holds tokens that come before those of the next one on every path through the tree.
    """
    num_sequences = sequence_ids.max() + 1 if len(sequence_ids) else sequence_ids.new_zeros(())
    dist.all_reduce(num_sequences, dist.ReduceOp.MAX, group)
    own = sums_by(sequence_ids, values, int(num_sequences))
    of_ranks = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(of_ranks, own, group)
    later = sum(of_ranks[dist.get_rank(group) + 1 :], torch.zeros_like(own))
    return later[sequence_ids]


class Exchange:
    """The all-to-all of one sequence, from some tokens with all heads to all tokens with some heads and back.

    Attributes:
        num_ranks: ranks that share the sequence.
        rank: this one among them.
    """

    def __init__(self, slice_lengths: Sequence[int], group: dist.ProcessGroup) -> None:
        """Exchange among a group's ranks, whose slices have so many tokens each, in order."""
        self._lengths, self._group = list(slice_lengths), group
        self.num_ranks, self.rank = len(self._lengths), dist.get_rank(group)
        self._mine = self._lengths[self.rank]

    def all_tokens(self, mine: Tensor) -> Tensor:
        """[1, heads, t, d] of this rank's tokens to [1, heads / ranks, T, d]."""
        _, num_heads, _, width = mine.shape
        num_mine = num_heads // len(self._lengths)
        sizes = [num_mine * length * width for length in self._lengths]
        flat = self._exchanged(mine, [num_mine * self._mine * width] * len(sizes), sizes)
        parts = torch.split(flat, sizes)
        shaped = [
            part.view(1, num_mine, length, width) for part, length in zip(parts, self._lengths, strict=True)
        ]
        return torch.cat(shaped, dim=2)

    def all_heads(self, whole: Tensor) -> Tensor:
        """[1, heads / ranks, T, d] to [1, heads, t, d]."""
        _, num_mine, _, width = whole.shape
        pieces = torch.cat([piece.reshape(-1) for piece in torch.split(whole, self._lengths, dim=2)])
        sizes = [num_mine * length * width for length in self._lengths]
        flat = self._exchanged(pieces, sizes, [num_mine * self._mine * width] * len(sizes))
        return flat.view(1, num_mine * len(self._lengths), self._mine, width)

    def _exchanged(self, given: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """What the ranks have for this one: elements, one rank after the other."""
        output = given.new_empty(sum(received))
        flat = given.contiguous().view(-1)
        exchange: Any = all_to_all_single
        exchanged: Tensor = exchange(output, flat, list(received), list(sent), self._group)
        return exchanged


class SharedAttention:
    """A TreeAttention of the whole sequence, called with this rank's tokens."""

    def __init__(self, whole: TreeAttention, exchange: Exchange) -> None:
        """Share the attention that was made of the whole sequence's `seen_until`."""
        self._whole, self._exchange = whole, exchange

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float | None, window: int | None
    ) -> Tensor:
        """Query [1, heads, t, d], key and value [1, key_value_heads, t, d] to [1, heads, t, d]."""
        if key.shape[1] % self._exchange.num_ranks:  # too few to share out: each is sent to several ranks
            repeats = query.shape[1] // key.shape[1]
            key, value = (x.repeat_interleave(repeats, dim=1) for x in (key, value))
        query, key, value = (self._exchange.all_tokens(x) for x in (query, key, value))
        return self._exchange.all_heads(self._whole.attend(query, key, value, scale=scale, window=window))
