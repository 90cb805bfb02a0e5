"""Gradients of attention by products of whole matrices are those of the softmax."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from vlrl.model.cpu_matmul import LARGE_BLOCKS_FROM, allow_onednn
from vlrl.model.kernels import nodes
from vlrl.model.kernels.gradients import FEWEST_QUERIES, gradients, is_quicker
from vlrl.model.kernels.nodes import NodeAttention
from vlrl.model.tree_attention import DenseAttention

SHARED, BRANCHES = 150, (130, 1, 129)


@pytest.fixture(autouse=True)
def onednn() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    allow_onednn(True)
    yield
    torch.set_float32_matmul_precision(before)


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_they_are_autograds(causal: bool, key_heads: int, scale: float | None) -> None:
    num_queries, num_keys, width = 37, 37 if causal else 23, 8
    query = random(1, 4, num_queries, width, seed=0).requires_grad_()
    key, value = (random(1, key_heads, num_keys, width, seed=s).requires_grad_() for s in (1, 2))
    grad = random(1, 4, num_queries, width, seed=3)
    inputs = [x.detach().double().requires_grad_() for x in (query, key, value)]
    q, k, v = inputs
    k, v = (x.repeat_interleave(4 // key_heads, 1) for x in (k, v))
    scores = q @ k.mT * (width**-0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(num_queries, num_keys, dtype=torch.bool).triu(1), -torch.inf)
    output = scores.softmax(-1) @ v
    expected = torch.autograd.grad(output, inputs, grad.double())
    found = gradients(
        *(grad, query.detach(), key.detach(), value.detach()),
        *(output.detach().float(), scores.detach().logsumexp(-1).float()),
        causal=causal,
        scale=scale,
    )
    for ours, exact in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, exact.float(), rtol=1e-4, atol=1e-5)


def test_scores_that_a_query_does_not_see_may_be_of_any_size() -> None:
    """They are computed, and their exponentials overflow, before they are left out."""
    query, key = (
        torch.full((1, 1, 3, 4), 50.0),
        torch.tensor([-50.0, 50.0, 50.0]).view(1, 1, 3, 1).repeat(1, 1, 1, 4),
    )
    sums = torch.tensor([[[-5000.0, 5000.0, 5000.0 + 2**0.5]]])
    found = gradients(query, query, key, query, query, sums, causal=True, scale=None)
    assert all(x.isfinite().all() for x in found)


def seen_until() -> Tensor:
    """A shared part and branches of it."""
    size = SHARED + sum(BRANCHES)
    ends = [size] * SHARED
    for branch in BRANCHES:
        ends += [len(ends) + branch] * branch
    return torch.tensor(ends, dtype=torch.int32)


def test_a_tree_s_gradients_are_those_of_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, bool]] = []

    def watched(*tensors: Tensor, causal: bool, scale: float | None) -> tuple[Tensor, ...]:
        calls.append((tensors[1].shape[2], causal))
        return gradients(*tensors, causal=causal, scale=scale)

    monkeypatch.setattr(nodes, "gradients", watched)
    tree, grad = seen_until(), random(1, 4, SHARED + sum(BRANCHES), 8, seed=9)
    inputs = [
        random(1, heads, len(tree), 8, seed=heads + s).requires_grad_() for s, heads in enumerate((4, 2, 2))
    ]
    of_nodes, of_mask = (
        torch.autograd.grad(attention.attend(*inputs, scale=None, window=None), inputs, grad)
        for attention in (NodeAttention(tree), DenseAttention(tree))
    )
    assert sorted(calls) == [(129, True), (130, True), (150, True), (260, False)]
    for ours, masked in zip(of_nodes, of_mask, strict=True):
        torch.testing.assert_close(ours, masked, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("num_queries", "num_keys", "dtype", "expected"),
    [
        (FEWEST_QUERIES, 40, torch.float32, True),
        (FEWEST_QUERIES - 1, 40, torch.float32, False),
        (LARGE_BLOCKS_FROM - 1, 40, torch.float32, True),
        (LARGE_BLOCKS_FROM, 40, torch.float32, False),
        (FEWEST_QUERIES, 2**16, torch.float32, False),
        (FEWEST_QUERIES, 40, torch.bfloat16, False),
    ],
)
def test_calls_of_other_sizes_and_types_are_torchs(
    num_queries: int, num_keys: int, dtype: torch.dtype, expected: bool
) -> None:
    query, key = (torch.empty(1, 2, size, 8, dtype=dtype, device="meta") for size in (num_queries, num_keys))
    assert is_quicker(query, key) is expected
    allow_onednn(False)
    assert not is_quicker(query, key)
