"""Attention over packed prefix trees: three ways of computing the same, none of which pads.

The rule is `vlrl.batch.MicroBatch`'s: query q sees key k if k ≤ q < seen_until[k]. Under a sliding window q
must also be less than `window` tokens below k on its path, as if each ledger were a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from vlrl.model.kernels import flex

BLOCK_TOKENS = 64
"""Queries that are computed at once: fewer cost calls, more compute pairs that nobody sees."""
KEPT_PAIRS = 2048 * 2048
"""Of more pairs in all blocks together, masks are built block by block, and again in the backward pass."""


class TreeAttention(Protocol):
    """The attention of one micro-batch, made once and used by every layer."""

    def __init__(self, seen_until: Tensor) -> None: ...

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float | None, window: int | None
    ) -> Tensor:
        """Query [1, heads, T, d], key and value [1, key_value_heads, T, d] to [1, heads, T, d]."""
        ...


def _depths(seen_until: Tensor) -> Tensor:
    """How many tokens each one sees before it: all those before it but the ones no longer seen."""
    places = torch.arange(len(seen_until), device=seen_until.device)
    return places - torch.searchsorted(seen_until.sort().values.long(), places, right=True)


class Rule:
    """Who sees whom."""

    def __init__(self, seen_until: Tensor) -> None:
        self._seen_until, self._depths = seen_until, _depths(seen_until)

    @property
    def longest_path(self) -> int:
        """Tokens from the beginning of a tree to the end of its longest branch."""
        return int(self._depths.max()) + 1

    def sees(self, query: Tensor, key: Tensor, window: int | None) -> Tensor:
        """Whether queries see keys, for indices that broadcast against each other; bool."""
        allowed = (key <= query) & (query < self._seen_until[key])
        return allowed if window is None else allowed & (self._depths[query] - self._depths[key] < window)

    def mask(self, queries: Tensor, keys: Tensor, window: int | None, dtype: torch.dtype) -> Tensor:
        """[1, 1, queries, keys] to add to the scores; not bool, which SDPA would convert for every layer."""
        allowed = self.sees(queries[:, None], keys[None], window)
        mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
        return mask.masked_fill_(~allowed, torch.finfo(dtype).min)[None, None]


def _sdpa(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float | None) -> Tensor:
    grouped = query.shape[1] != key.shape[1]
    if grouped and query.is_cuda:  # CUDA's masked kernels know no groups
        repeats = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(repeats, dim=1) for x in (key, value))
        grouped = False
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=grouped)


class DenseAttention:
    """One mask of T×T: least calls; for short sequences, and to compare the others with."""

    def __init__(self, seen_until: Tensor) -> None:
        self._rule = Rule(seen_until)
        self._masks: dict[int | None, Tensor] = {}

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float | None, window: int | None
    ) -> Tensor:
        """See TreeAttention."""
        if window not in self._masks:
            places = torch.arange(query.shape[2], device=query.device)
            self._masks[window] = self._rule.mask(places, places, window, query.dtype)
        return _sdpa(query, key, value, self._masks[window], scale)


@dataclass(frozen=True, slots=True)
class _Block:
    """Queries [start, end) and the spans of keys that at least one of them sees."""

    start: int
    end: int
    spans: tuple[tuple[int, int], ...]

    @property
    def num_pairs(self) -> int:
        return (self.end - self.start) * sum(end - start for start, end in self.spans)


class BlockAttention:
    """Queries in blocks, each against the keys it can see; no mask is larger than a block times a path.

    What lies in other trees or on other branches is not computed.
    """

    def __init__(self, seen_until: Tensor) -> None:
        self._rule = Rule(seen_until)
        self._blocks = _blocks(seen_until.cpu().numpy().astype(np.int64))
        self._kept = sum(block.num_pairs for block in self._blocks) <= KEPT_PAIRS
        self._masks: dict[tuple[int, int | None], Tensor] = {}
        edges = sorted({edge for block in self._blocks for span in block.spans for edge in span})
        self._sizes = [after - before for before, after in pairwise(edges)]
        self._pieces = {edge: number for number, edge in enumerate(edges)}

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float | None, window: int | None
    ) -> Tensor:
        """See TreeAttention."""

        def of_block(block: _Block, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return _sdpa(q, k, v, self._mask(block, window, q), scale)

        if not self._kept:
            return _recomputed(query, key, value, self._blocks, of_block)
        # Cut once: the backward pass of a slice writes zeros for all that it left out.
        queries = torch.split(query, [block.end - block.start for block in self._blocks], dim=2)
        keys, values = (torch.split(x, self._sizes, dim=2) for x in (key, value))
        outputs = [
            of_block(block, q, self._joined(keys, block), self._joined(values, block))
            for block, q in zip(self._blocks, queries, strict=True)
        ]
        return torch.cat(outputs, dim=2)

    def _joined(self, pieces: Sequence[Tensor], block: _Block) -> Tensor:
        numbers = (range(self._pieces[start], self._pieces[end]) for start, end in block.spans)
        return torch.cat([pieces[number] for span in numbers for number in span], dim=2)

    def _mask(self, block: _Block, window: int | None, query: Tensor) -> Tensor:
        name = (block.start, window)
        if name in self._masks:
            return self._masks[name]
        keys = torch.cat([torch.arange(s, e, device=query.device) for s, e in block.spans])
        queries = torch.arange(block.start, block.end, device=query.device)
        mask = self._rule.mask(queries, keys, window, query.dtype)
        if self._kept:
            self._masks[name] = mask
        return mask


class _Recomputed(torch.autograd.Function):
    """Blocks whose masks and scores are computed again in the backward pass instead of being kept."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, blocks: Sequence[_Block], attend: Callable[..., Tensor]
    ) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.blocks, ctx.attend = blocks, attend
        return torch.cat([attend(block, *_inputs(block, q, k, v)) for block in blocks], dim=2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # under gradient checkpointing they may be asked for once
        grads = [torch.zeros_like(x) for x in saved]
        for block in ctx.blocks:
            inputs = [x.detach().requires_grad_() for x in _inputs(block, *saved)]
            with torch.enable_grad():
                output = ctx.attend(block, *inputs)
            found = torch.autograd.grad(output, inputs, grad[:, :, block.start : block.end])
            grads[0][:, :, block.start : block.end] = found[0]
            for target, of_keys in zip(grads[1:], found[1:], strict=True):
                cursor = 0
                for start, end in block.spans:
                    target[:, :, start:end] += of_keys[:, :, cursor : cursor + end - start]
                    cursor += end - start
        return (*grads, None, None)


_recomputed: Callable[..., Tensor] = _Recomputed.apply


def _inputs(block: _Block, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """A block's queries, and the keys and values that it sees."""
    seen = (torch.cat([x[:, :, start:end] for start, end in block.spans], dim=2) for x in (k, v))
    return (q[:, :, block.start : block.end], *seen)


def block_sizes(seen_until: npt.NDArray[np.int64]) -> tuple[int, int]:
    """(pairs of a query and a key, keys) of all blocks together, which is what BlockAttention holds."""
    blocks = _blocks(seen_until)
    keys = sum(end - start for block in blocks for start, end in block.spans)
    return sum(block.num_pairs for block in blocks), keys


def _blocks(ends: npt.NDArray[np.int64]) -> tuple[_Block, ...]:
    """A sequence cut where the least is seen, so if possible between trees, else where a branch begins."""
    size = len(ends)
    begins = np.append(np.flatnonzero(np.diff(ends)) + 1, size)  # of nodes
    depths = np.append(np.arange(size) - np.searchsorted(np.sort(ends), np.arange(size), side="right"), 0)
    blocks: list[_Block] = []
    start = 0
    while start < size:
        near = begins[(begins > start + BLOCK_TOKENS // 2) & (begins <= start + BLOCK_TOKENS * 3 // 2)]
        # Of several places where equally little is seen, the last.
        end = int(near[::-1][depths[near[::-1]].argmin()]) if len(near) else min(start + BLOCK_TOKENS, size)
        seen = np.concatenate([np.flatnonzero(ends[:start] > start), np.arange(start, end)])
        gaps = np.flatnonzero(np.diff(seen) > 1)
        firsts, lasts = seen[[0, *(gaps + 1)]], seen[[*gaps, -1]] + 1
        blocks.append(_Block(start, end, tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))))
        start = end
    return tuple(blocks)


class FlexAttention:
    """torch's FlexAttention, which skips blocks of keys that no query of a block sees; see `kernels.flex`."""

    def __init__(self, seen_until: Tensor) -> None:
        self._size = len(seen_until)
        self._padded = flex.bucket(self._size)
        rest = torch.arange(self._size, self._padded, device=seen_until.device) + 1  # each sees itself
        self._seen_until = torch.cat([seen_until.long(), rest])
        self._depths = _depths(self._seen_until)
        self._masks: dict[int | None, Any] = {}

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float | None, window: int | None
    ) -> Tensor:
        """See TreeAttention."""
        if window not in self._masks:
            self._masks[window] = flex.block_mask(self._seen_until, self._depths, window)
        query, key, value = (F.pad(x, (0, 0, 0, self._padded - self._size)) for x in (query, key, value))
        return flex.attend(query, key, value, self._masks[window], scale)[:, :, : self._size]
