"""Ranks that share one sequence, in layers with a state: all tokens of some channels, then of some heads.

Channels of the convolution and heads of the recurrence know nothing of each other, as the heads of attention
do not, so they are shared out as in `vlrl.model.sequence_parallel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from vlrl.model.recurrent.tree import RecurrentTree, Rule
from vlrl.model.sequence_parallel import Exchange


class SharedRecurrence:
    """A RecurrentTree of the whole sequence, called with this rank's tokens."""

    def __init__(self, whole: RecurrentTree, exchange: Exchange) -> None:
        """Share the tree that was made of the whole sequence's `seen_until`."""
        self._whole, self._exchange = whole, exchange

    def convolve(
        self,
        conv: Callable[..., Tensor],
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        """See RecurrentTree; a rank has the weights of all channels and uses those of its own."""
        count = len(weight) // self._exchange.num_ranks
        own = slice(self._exchange.rank * count, (self._exchange.rank + 1) * count)
        everywhere = self._exchange.all_tokens(hidden[..., None])[..., 0]
        found = self._whole.convolve(
            conv, everywhere, weight[own], None if bias is None else bias[own], **options
        )
        return self._exchange.all_heads(found[..., None])[..., 0]

    def scan(
        self,
        rule: Rule,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        named: Mapping[str, Tensor],
        **options: Any,
    ) -> Tensor:
        """See RecurrentTree."""
        query, key, value = (self._everywhere(x) for x in (query, key, value))
        numbers = {name: self._everywhere(x[..., None])[..., 0] for name, x in named.items()}
        found = self._whole.scan(rule, query, key, value, numbers, **options)
        return self._exchange.all_heads(found.transpose(1, 2)).transpose(1, 2)

    def _everywhere(self, mine: Tensor) -> Tensor:
        """[1, t, heads, d] of this rank's tokens to [1, T, heads / ranks, d]."""
        return self._exchange.all_tokens(mine.transpose(1, 2)).transpose(1, 2)
