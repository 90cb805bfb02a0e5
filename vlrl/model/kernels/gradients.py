"""Gradients of one call of attention by products of whole matrices, for CPUs on which oneDNN multiplies.

torch's kernel for CPUs computes fewer than 768 queries in blocks of 64 or 32, which are too small for oneDNN
(see vlrl/model/cpu_matmul.py). Its backward pass takes about twice as long as these five products, as long as
they are large enough to be worth preparing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vlrl.model.cpu_matmul import has_small_blocks

FEWEST_QUERIES = 128
"""Of a call; with fewer, torch's kernel is quicker."""
MOST_SCORES = 2**23
"""Of a call: two matrices of so many numbers are kept while it is computed."""


def is_quicker(query: Tensor, key: Tensor) -> bool:
    """Whether gradients of a call without a mask take less time by `gradients` than by torch's kernel.

    Args:
        query: [batch, heads, queries, d].
        key: [batch, key heads, keys, d].
    """
    num_queries = query.shape[2]
    return (
        query.dtype == torch.float32
        and num_queries >= FEWEST_QUERIES
        and has_small_blocks(num_queries)
        and query.shape[:3].numel() * key.shape[2] <= MOST_SCORES
    )


def gradients(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    logsumexp: Tensor,
    *,
    causal: bool,
    scale: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value: FlashAttention-2 (arXiv 2307.08691), algorithm 2, in one block.

    Heads that share keys are rows of one matrix.

    Args:
        grad: [batch, heads, queries, d], of the output.
        query: like grad.
        key: [batch, key heads, keys, d].
        value: like key.
        output: like grad: of the whole softmax, of which these keys may be a part.
        logsumexp: [batch, heads, queries], of the whole softmax's scores.
        causal: whether a query sees no key behind it.
        scale: of the scores; d ** -0.5 if None.
    """
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    num_matrices = key.shape[:2].numel()

    def rows(x: Tensor) -> Tensor:
        return x.reshape(num_matrices, -1, x.shape[-1])

    q, upstream, k, v = rows(query * factor), rows(grad), rows(key), rows(value)
    p = torch.bmm(q, k.mT).sub_(rows(logsumexp[..., None])).exp_()
    if causal:
        p.view(-1, query.shape[2], k.shape[1]).tril_()
    of_value = torch.bmm(p.mT, upstream)
    of_scores = torch.bmm(upstream, v.mT).sub_(rows((grad * output).sum(-1, keepdim=True))).mul_(p)
    of_query, of_key = torch.bmm(of_scores, k).mul_(factor), torch.bmm(of_scores.mT, q)
    return of_query.view(query.shape), of_key.view(key.shape), of_value.view(value.shape)
