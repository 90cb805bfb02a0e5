"""Spans of one length that are neighbours are attended to in one call, each within itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from vlrl.model.cpu_matmul import allow_onednn
from vlrl.model.kernels import nodes
from vlrl.model.kernels.nodes import attend_within
from vlrl.model.kernels.spans import by_length

LENGTHS = (64, 64, 64, 7, 64, 130, 130, 1, 1)
HEADS, WIDTH, SCALE = 2, 8, 0.4


@pytest.fixture(params=[False, True], ids=["torch's products", "oneDNN"], autouse=True)
def products(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    allow_onednn(request.param)
    yield
    torch.set_float32_matmul_precision(before)


def places(lengths: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(pairwise(accumulate(lengths, initial=0)))


def inputs(num_tokens: int) -> list[Tensor]:
    """Query, key and value, [1, heads, T, d] but in memory by token, as a tower has them."""
    generator = torch.Generator().manual_seed(num_tokens)
    made = torch.randn(3, 1, num_tokens, HEADS, WIDTH, generator=generator).transpose(2, 3)
    return [x.clone(memory_format=torch.preserve_format).requires_grad_() for x in made]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(spans, queries of each) of the kernel's forward calls from now on."""
    calls: list[tuple[int, int]] = []
    name = "_scaled_dot_product_flash_attention_for_cpu"
    kernel = getattr(torch.ops.aten, name)

    def watched(query: Tensor, *tensors: Tensor, **options: Any) -> Any:
        calls.append((query.shape[0], query.shape[2]))
        return kernel(query, *tensors, **options)

    monkeypatch.setattr(torch.ops.aten, name, watched)
    return calls


@pytest.mark.parametrize(
    ("most", "expected_calls"),
    [
        (nodes.RUN_SCORES, [(3, 64), (1, 7), (1, 64), (2, 130), (2, 1)]),
        (2 * HEADS * 64**2, [(2, 64), (1, 64), (1, 7), (1, 64), (1, 130), (1, 130), (2, 1)]),
    ],
    ids=["whole runs", "runs of two windows"],
)
def test_values_and_gradients_are_those_of_each_span(
    monkeypatch: pytest.MonkeyPatch, most: int, expected_calls: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(nodes, "RUN_SCORES", most)
    spans, given = places(LENGTHS), inputs(sum(LENGTHS))
    calls = counted(monkeypatch)
    q, k, v = given
    found = attend_within(q, k, v, spans, SCALE)
    assert calls == expected_calls
    starts = torch.tensor([0, *(end for _, end in spans)])
    q, k, v = (x[0].transpose(0, 1) for x in given)
    expected = by_length(q, k, v, starts, max(LENGTHS), SCALE).transpose(0, 1)[None]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    grad = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    for ours, plain in zip(
        torch.autograd.grad(found, given, grad), torch.autograd.grad(expected, given, grad), strict=True
    ):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)


def test_one_span_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    q, k, v = inputs(300)
    attend_within(q, k, v, [(0, 300)], SCALE)
    assert calls == [(1, 300)]
