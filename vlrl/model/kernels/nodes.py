"""Attention over prefix trees on a CPU, node by node: no keys are copied, and nearly nothing is masked.

A node of a tree is a run of tokens that the same later ones see, such as a prompt or what one branch adds to
it. Each attends to itself, causally; and all that comes after it on its branches, which lies behind it in one
piece, attends to the whole of it. A query's softmax is put together from these parts by their sums of
exponentials, as in Cascade Inference (flashinfer.ai/2024/02/02/cascade-inference.html) and FlashDecoding;
backward each part is given the whole softmax's, so that its gradients only have to be added up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vlrl.model.cpu_matmul import products_of_attention
from vlrl.model.kernels.gradients import gradients, is_quicker
from vlrl.model.tree_attention import BlockAttention, Rule

TOGETHER = 64
"""Tokens of neighbouring small nodes that attend to each other in one call, with a mask, at most."""
RUN_SCORES = 2**20
"""Scores of all heads of spans that go in one call, at most, so that they stay in a processor's caches."""


@dataclass(frozen=True, slots=True)
class Part:
    """Queries and keys of one call, each [start, end).

    Attributes:
        queries: that attend.
        keys: that they attend to.
        num_spans: of one length that they are made of, each of which attends to itself.
        mask: [1, 1, queries, keys] to add to the scores; None if nothing but `causal` restricts them.
        causal: whether a query sees no key behind it.
    """

    queries: tuple[int, int]
    keys: tuple[int, int]
    num_spans: int = 1
    mask: Tensor | None = None
    causal: bool = False

    def of_queries(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The queries' part of tensors [1, heads, T, …]: [spans, heads, queries, …]."""
        return self._views(self.queries, tensors)

    def of_keys(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The keys' part of tensors [1, heads, T, …]: [spans, heads, keys, …]."""
        return self._views(self.keys, tensors)

    def _views(self, place: tuple[int, int], tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        views = (x[:, :, place[0] : place[1]] for x in tensors)
        if self.num_spans == 1:
            return tuple(views)
        return tuple(x.view(x.shape[1], self.num_spans, -1, *x.shape[3:]).transpose(0, 1) for x in views)

    @property
    def num_queries(self) -> int:
        """That attend, of each span."""
        return (self.queries[1] - self.queries[0]) // self.num_spans

    @property
    def options(self) -> dict[str, Any]:
        """What the kernel is given besides tensors and the scale."""
        return {"dropout_p": 0.0, "is_causal": self.causal, "attn_mask": self.mask}


def attend_within(
    query: Tensor, key: Tensor, value: Tensor, spans: Sequence[tuple[int, int]], scale: float
) -> Tensor:
    """Attention of every token to all tokens of its span [start, end); the spans cover all of them in order.

    Neighbours of one length go in one call.

    Args:
        query: [1, heads, T, d].
        key: like query.
        value: like query.
        spans: of tokens.
        scale: of the scores.

    Returns:
        [1, heads, T, d].
    """
    parts = []
    for length, equal in groupby(spans, key=lambda span: span[1] - span[0]):
        run = list(equal)
        most = max(1, RUN_SCORES // (query.shape[1] * length**2))
        for first in range(0, len(run), most):
            together = run[first : first + most]
            place = together[0][0], together[-1][1]
            parts.append(Part(place, place, len(together)))
    return _attend(query, key, value, tuple(parts), scale)


class NodeAttention:
    """See `vlrl.model.tree_attention.TreeAttention`. Layers with a window shorter than a path use blocks."""

    def __init__(self, seen_until: Tensor) -> None:
        self._seen_until = seen_until
        self._nodes = nodes_of(seen_until.cpu().numpy())
        self._rule = Rule(seen_until)
        self._parts: dict[torch.dtype, tuple[Part, ...]] = {}

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float | None, window: int | None
    ) -> Tensor:
        """See TreeAttention."""
        if window is not None and window < self._rule.longest_path:
            return self._windowed.attend(query, key, value, scale=scale, window=window)
        if query.dtype not in self._parts:
            self._parts[query.dtype] = tuple(self._of(query.dtype))
        return _attend(query, key, value, self._parts[query.dtype], scale)

    @cached_property
    def _windowed(self) -> BlockAttention:
        return BlockAttention(self._seen_until)

    def _of(self, dtype: torch.dtype) -> list[Part]:
        """First those in which each query sees itself, then those of what came before."""
        own: list[Part] = []
        before: list[Part] = []
        for nodes in neighbours(self._nodes):
            start, end = nodes[0][0], nodes[-1][1]
            places = torch.arange(start, end)
            mask = self._rule.mask(places, places, None, dtype) if len(nodes) > 1 else None
            own.append(Part((start, end), (start, end), mask=mask, causal=mask is None))
            before += [Part((end, until), (s, e)) for s, e, until in nodes if until > end]
        return own + before


def nodes_of(seen_until: npt.NDArray[np.integer[Any]]) -> list[tuple[int, int, int]]:
    """(start, end, end of the last token that sees it) of every node, in order."""
    edges = np.flatnonzero(np.diff(seen_until)) + 1
    starts, ends = [0, *edges.tolist()], [*edges.tolist(), len(seen_until)]
    return list(zip(starts, ends, seen_until[starts].tolist(), strict=True))


def neighbours(nodes: Sequence[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """Nodes in order, those together that have TOGETHER tokens at most."""
    found: list[list[tuple[int, int, int]]] = []
    for node in nodes:
        if found and node[1] - found[-1][0][0] <= TOGETHER:
            found[-1].append(node)
        else:
            found.append([node])
    return found


class _NodeAttention(torch.autograd.Function):
    """Keeps its inputs, its output and one number for each query and head."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, parts: Sequence[Part], scale: float | None
    ) -> Tensor:
        exact = torch.float64 if q.dtype == torch.float64 else torch.float32
        output = q.new_empty(q.transpose(1, 2).shape, dtype=exact).transpose(1, 2)  # as the kernel returns it
        logsumexp = q.new_empty(q.shape[:3], dtype=exact)
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # here: a trial finds it missing
        for part in parts:
            with products_of_attention(part.num_queries):
                found, sums = kernel(*part.of_queries(q), *part.of_keys(k, v), **part.options, scale=scale)
            if part.queries == part.keys:
                _put(part.of_queries(output, logsumexp), (found, sums))
            else:
                _merge(part.of_queries(output, logsumexp), found, sums)
        output = output.to(q.dtype)
        ctx.save_for_backward(q, k, v, output, logsumexp)
        ctx.parts, ctx.scale = parts, scale
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, output, logsumexp = ctx.saved_tensors  # under gradient checkpointing: read them once
        grads = [torch.empty_like(x, dtype=logsumexp.dtype) for x in (q, k, v)]
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        for part in ctx.parts:
            [of_grad, of_q, *whole] = part.of_queries(grad, q, output, logsumexp)
            inputs = (of_grad, of_q, *part.of_keys(k, v), *whole)
            if part.mask is None and is_quicker(*inputs[1:3]):
                found = gradients(*inputs, causal=part.causal, scale=ctx.scale)
            else:
                with products_of_attention(part.num_queries):
                    found = kernel(*inputs, **part.options, scale=ctx.scale)
            targets = part.of_queries(grads[0]) + part.of_keys(*grads[1:])
            if part.queries == part.keys:
                _put(targets, found)
            else:
                for target, gradient in zip(targets, found, strict=True):
                    target += gradient
        return (*(x.to(y.dtype) for x, y in zip(grads, (q, k, v), strict=True)), None, None)


_attend: Callable[..., Tensor] = _NodeAttention.apply


def _put(targets: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for target, value in zip(targets, values, strict=True):
        target.copy_(value)


def _merge(softmax: Sequence[Tensor], more: Tensor, more_sums: Tensor) -> None:
    """Add other keys to a softmax, in place: means of values, weighted by sums of exponentials."""
    output, logsumexp = softmax
    total = torch.logaddexp(logsumexp, more_sums)
    output.mul_((logsumexp - total).exp_()[..., None]).add_(more * (more_sums - total).exp_()[..., None])
    logsumexp.copy_(total)
