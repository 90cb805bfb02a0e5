"""torch's FlexAttention over prefix trees: compiled for few lengths, and never run in any other way.

A length that was not seen before is a compilation of its own, and torch falls back to a graph that holds all
scores at once after 8 of them, with one warning. So lengths are padded to few buckets, the limit is above the
number of buckets, and a call that would not be compiled raises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from vlrl.errors import EngineError

BLOCK = 128
"""Queries and keys of a block of FlexAttention's mask."""
SMALLEST = 1024
"""Tokens of the smallest bucket."""
MOST_COMPILATIONS = 128
"""Limit for torch: with gradient and without, for 21 buckets up to a million tokens, for up to 3 windows."""


def bucket(num_tokens: int) -> int:
    """The length that so many tokens are padded to: 1024, 1536, 2048, 3072, …, at most half as much again."""
    size = SMALLEST
    while size < num_tokens:
        is_power = size & (size - 1) == 0
        size = size * 3 // 2 if is_power else size * 4 // 3
    return size


def block_mask(seen_until: Tensor, depths: Tensor, window: int | None) -> Any:
    """FlexAttention's mask of a forest, from the ends and depths of its tokens; nothing of T×T is made.

    Args:
        seen_until: [T] int64, T a multiple of BLOCK.
        depths: [T] int64, tokens that each one sees before it without a window.
        window: most tokens that a query sees on its path.
    """
    from torch.nn.attention.flex_attention import BlockMask

    def rule(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        allowed = (key <= query) & (query < seen_until[key])
        return allowed if window is None else allowed & (depths[query] - depths[key] < window)

    partial, full = _seen_blocks(seen_until, depths, window)
    return BlockMask.from_kv_blocks(*_listed(partial), *_listed(full), BLOCK_SIZE=BLOCK, mask_mod=rule)


def _seen_blocks(seen_until: Tensor, depths: Tensor, window: int | None) -> tuple[Tensor, Tensor]:
    """Blocks [queries, keys] of which some pairs are seen, perhaps, and of which all are; bool, disjoint."""
    ends, levels = seen_until.view(-1, BLOCK), depths.view(-1, BLOCK)
    firsts = torch.arange(len(ends), device=ends.device) * BLOCK
    below = firsts[:, None] > firsts[None]
    seen = below & (ends.amax(1)[None] > firsts[:, None])
    full = below & (ends.amin(1)[None] >= firsts[:, None] + BLOCK)
    if window is not None:
        highest, lowest = levels.amax(1), levels.amin(1)
        seen &= lowest[:, None] - highest[None] < window
        full &= highest[:, None] - lowest[None] < window
    diagonal = firsts[:, None] == firsts[None]  # each token sees itself
    return (seen & ~full) | diagonal, full


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """A bool [rows, columns] as a BlockMask has it: counts [1, 1, rows], and columns, those set first."""
    numbers = blocks.int()
    order = numbers.argsort(dim=-1, descending=True, stable=True)
    return numbers.sum(-1, dtype=torch.int32)[None, None], order.int()[None, None]


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Any, scale: float | None) -> Tensor:
    """Attention of a bucket's length; two compilations for each mask's shape: with gradient, and without.

    Args:
        query: [1, heads, T, d].
        key: [1, key_value_heads, T, d].
        value: like key.
        mask: of `block_mask`.
        scale: of the scores; None is 1 / √d.
    """
    inputs = [x.contiguous() for x in (query, key, value)]  # a stride is compiled in too
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
        return compiled()(*inputs, mask, scale)
    with torch.no_grad():
        return compiled()(*(x.detach() for x in inputs), mask, scale)


@cache
def compiled(backend: str | Callable[..., Any] = "inductor") -> Callable[..., Tensor]:
    """FlexAttention as one graph; what cannot be compiled raises."""
    # torch.compile's own argument for this is newer than some torch that GPU machines have.
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, MOST_COMPILATIONS)
    return torch.compile(_fused, fullgraph=True, dynamic=False, backend=backend)


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Any, scale: float | None) -> Tensor:
    from torch.nn.attention.flex_attention import flex_attention

    if not torch.compiler.is_compiling():
        raise EngineError(
            "FlexAttention is not compiled here, and would hold all scores at once: unset "
            "TORCHDYNAMO_DISABLE and TORCH_COMPILE_DISABLE, or set trainer.attention=blocks"
        )
    grouped = query.shape[1] != key.shape[1]
    output: Tensor = flex_attention(query, key, value, block_mask=mask, scale=scale, enable_gqa=grouped)
    return output
