"""Packed prefix trees for layers with a state: every node goes on from the state in which its parent ends.

A row's layer would read one token after the other. Here nodes of one depth are read side by side, each from a
copy of its parent's last state, so what branches share is read once, and nothing is passed from one branch to
its neighbour in the pack. A short causal convolution before the layer sees, at the beginning of a node, the
last tokens of its path in place of those that lie before it in the pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from vlrl.types import IntArray

MAX_PADDING = 2
"""Nodes are read side by side if the longest has at most so many times the tokens of the shortest."""
SHORT_TOKENS = 64
"""Or if all have at most so many: what the delta rule computes at once."""

Rule = Callable[..., tuple[Tensor, Tensor | None]]
"""A recurrence as transformers calls it: (query, key, value, *, g, beta, initial_state, output_final_state)
of [batch, num_tokens, …] to outputs [batch, num_tokens, …] and the state after the last token."""


class PackedNode(NamedTuple):
    """Tokens [start, end) of the pack.

    Attributes:
        parent: number of the node that it goes on from; -1 for the first of a tree.
        depth: nodes before it on its path.
    """

    start: int
    end: int
    parent: int
    depth: int


def nodes_of(seen_until: IntArray) -> list[PackedNode]:
    """The nodes of packed trees, in order; `seen_until` is [num_tokens], see `vlrl.batch.MicroBatch`."""
    edges = [0, *(np.flatnonzero(np.diff(seen_until)) + 1).tolist(), len(seen_until)]
    nodes: list[PackedNode] = []
    path: list[int] = []
    for start, end in pairwise(edges):
        while path and seen_until[nodes[path[-1]].start] <= start:
            path.pop()
        nodes.append(PackedNode(start, end, path[-1] if path else -1, len(path)))
        path.append(len(nodes) - 1)
    return nodes


@dataclass(frozen=True, slots=True)
class _SideBySide:
    """Nodes of one depth that are read at once.

    Attributes:
        places: [num_nodes, most_tokens] of their tokens in the pack; one beyond the last token for padding.
        kept: which of the flattened places are tokens.
        parents: [num_nodes], which of the states of the depth before each begins with; None at depth 0.
        is_inner: whether a node of them has children.
    """

    places: Tensor
    kept: Tensor
    parents: Tensor | None
    is_inner: bool


class RecurrentTree:
    """How layers with a state read one micro-batch: made once, used by every layer.

    Attributes:
        num_read: tokens that a layer reads, padding included.
    """

    def __init__(self, seen_until: Tensor) -> None:
        """Find the nodes of packed trees: `seen_until` is [num_tokens], see `vlrl.batch.MicroBatch`."""
        self._device, self._size = seen_until.device, len(seen_until)
        self._nodes = nodes_of(seen_until.cpu().numpy().astype(np.int64))
        self._levels = self._read_levels()
        order = torch.cat([one.places.flatten()[one.kept] for level in self._levels for one in level])
        self._to_pack = torch.argsort(order)
        self._convolved: dict[int, tuple[Tensor, Tensor]] = {}
        self.num_read = sum(one.places.numel() for level in self._levels for one in level)

    def convolve(
        self,
        conv: Callable[..., Tensor],
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        """A causal convolution along every path: [1, channels, num_tokens] to the same.

        Args:
            conv: transformers' function, of [1, channels, length], weight and bias.
            hidden: of the packed tokens.
            weight: [channels, width].
            bias: [channels].
            options: for `conv`.
        """
        places, kept = self._with_history(weight.shape[-1] - 1)
        return conv(F.pad(hidden, (0, 1))[..., places], weight, bias, **options)[..., kept]

    def scan(
        self,
        rule: Rule,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        named: Mapping[str, Tensor],
        **options: Any,
    ) -> Tensor:
        """A recurrence along every path: [1, num_tokens, heads, width] outputs.

        Args:
            rule: the recurrence. A token of zeros leaves its state as it is, which is what padding needs.
            query: [1, num_tokens, heads, width], of the packed tokens; key and value likewise.
            key: like query.
            value: like query.
            named: [1, num_tokens, …] of further tensors of the tokens, which `rule` takes by name.
            options: for `rule`.
        """
        tensors = [query, key, value, *named.values()]
        tokens = [torch.cat([x[0], x.new_zeros(1, *x.shape[2:])]) for x in tensors]  # the last is padding
        outputs: list[Tensor] = []
        states: Tensor | None = None
        for level in self._levels:
            ends: list[Tensor] = []
            for one in level:
                q, k, v, *others = (x[one.places] for x in tokens)
                output, state = rule(
                    *(q, k, v),
                    **dict(zip(named, others, strict=True)),
                    initial_state=None if one.parents is None or states is None else states[one.parents],
                    output_final_state=one.is_inner,
                    **options,
                )
                outputs.append(output.flatten(0, 1)[one.kept])
                if one.is_inner:
                    assert state is not None
                    ends.append(state)
            states = torch.cat(ends) if ends else None
        return torch.cat(outputs)[self._to_pack][None]

    def _read_levels(self) -> list[list[_SideBySide]]:
        """The nodes by depth, and of each depth those that are read at once: first those with children."""
        inner = {node.parent for node in self._nodes}
        levels: list[list[_SideBySide]] = []
        states_above: dict[int, int] = {}  # node → place of its last state among those of its depth
        for depth in range(1 + max(node.depth for node in self._nodes)):
            numbers = [number for number, node in enumerate(self._nodes) if node.depth == depth]
            level, states = list[_SideBySide](), dict[int, int]()
            for is_inner in (True, False):
                for group in self._of_like_length([n for n in numbers if (n in inner) is is_inner]):
                    level.append(self._side_by_side(group, states_above, is_inner))
                    if is_inner:
                        states |= {number: len(states) + place for place, number in enumerate(group)}
            levels.append(level)
            states_above = states
        return levels

    def _of_like_length(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """Nodes in groups without much padding."""

        def length(number: int) -> int:
            return self._nodes[number].end - self._nodes[number].start

        group: list[int] = []
        for number in sorted(numbers, key=length):
            if group and length(number) > max(SHORT_TOKENS, MAX_PADDING * length(group[0])):
                yield group
                group = []
            group.append(number)
        if group:
            yield group

    def _side_by_side(
        self, group: Sequence[int], states_above: Mapping[int, int], is_inner: bool
    ) -> _SideBySide:
        spans = [self._nodes[number][:2] for number in group]
        places = np.full((len(spans), max(end - start for start, end in spans)), self._size, np.int64)
        for row, (start, end) in zip(places, spans, strict=True):
            row[: end - start] = np.arange(start, end)
        parents = [states_above[self._nodes[number].parent] for number in group] if states_above else None
        return _SideBySide(
            self._tensor(places),
            self._tensor(np.flatnonzero(places.ravel() < self._size)),
            None if parents is None else self._tensor(parents),
            is_inner,
        )

    def _with_history(self, num_before: int) -> tuple[Tensor, Tensor]:
        """Places of all nodes' tokens, each node after those on its path before it, and which are its own."""
        if num_before not in self._convolved:
            places: list[int] = []
            kept: list[int] = []
            for node in self._nodes:
                history: list[int] = []
                before = node
                while before.parent >= 0 and len(history) < num_before:
                    before = self._nodes[before.parent]
                    own = range(max(before.start, before.end - num_before + len(history)), before.end)
                    history = [*own, *history]
                places += [self._size] * (num_before - len(history)) + history
                kept += range(len(places), len(places) + node.end - node.start)
                places += range(node.start, node.end)
            self._convolved[num_before] = self._tensor(places), self._tensor(kept)
        return self._convolved[num_before]

    def _tensor(self, values: Sequence[int] | IntArray) -> Tensor:
        return torch.as_tensor(np.asarray(values, np.int64), device=self._device)
