"""Trees through layers with a state: nodes, what is read at once, and a recurrence written out by hand."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vlrl.errors import ConfigError
from vlrl.model.recurrent import layers
from vlrl.model.recurrent.tree import MAX_PADDING, SHORT_TOKENS, PackedNode, RecurrentTree, nodes_of

Tree = tuple[int, list[Any]]
"""Tokens of a node, and its children."""
TREES = st.recursive(
    st.tuples(st.integers(1, 70), st.just([])),
    lambda children: st.tuples(st.integers(1, 70), st.lists(children, min_size=2, max_size=3)),
    max_leaves=5,
)


def written(trees: list[Tree]) -> tuple[Tensor, list[list[int]]]:
    """`seen_until` of packed trees, and the places of each path to a leaf."""
    seen: list[int] = []
    paths: list[list[int]] = []

    def write(tree: Tree, path: list[int]) -> None:
        count, children = tree
        start = len(seen)
        seen.extend([0] * count)
        path = [*path, *range(start, start + count)]
        for child in children:
            write(child, path)
        seen[start : start + count] = [len(seen)] * count
        if not children:
            paths.append(path)

    for tree in trees:
        write(tree, [])
    return torch.tensor(seen, dtype=torch.int32), paths


def decaying(
    query: Tensor, key: Tensor, value: Tensor, *, g: Tensor, initial_state: Tensor | None, **_: Any
) -> tuple[Tensor, Tensor]:
    """A recurrence a token at a time: the state decays by exp(g), takes key · value, and query reads it."""
    state = torch.zeros_like(key[:, 0]) if initial_state is None else initial_state
    outputs = []
    for i in range(query.shape[1]):
        state = state * g[:, i, :, None].exp() + key[:, i] * value[:, i]
        outputs.append(query[:, i] * state)
    return torch.stack(outputs, dim=1), state


def convolved(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A causal convolution of each channel."""
    return F.conv1d(hidden, weight[:, None], bias, padding=weight.shape[-1] - 1, groups=len(weight))[
        ..., : hidden.shape[-1]
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(TREES, min_size=1, max_size=3))
def test_every_path_is_read_as_a_row_of_its_own(trees: list[Tree]) -> None:
    """Outputs and gradients; float64, so that nothing but an error can differ."""
    seen, paths = written(trees)
    tree, size = RecurrentTree(seen), len(seen)
    generator = torch.Generator().manual_seed(size)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    query, key, value = (random(1, size, 2, 3).requires_grad_() for _ in range(3))
    decays = -random(1, size, 2).abs()
    weight = random(5, 4).requires_grad_()
    hidden = random(1, 5, size).requires_grad_()
    outputs = tree.scan(decaying, query, key, value, {"g": decays})
    smooth = tree.convolve(convolved, hidden, weight)
    expected: Any = [None] * size
    expected_smooth: Any = [None] * size
    for path in paths:
        q, k, v = (x[:, path] for x in (query, key, value))
        rows, _ = decaying(q, k, v, g=decays[:, path], initial_state=None)
        columns = convolved(hidden[..., path], weight)
        for place, row, column in zip(path, rows[0], columns[0].T, strict=True):
            expected[place], expected_smooth[place] = row, column
    rows, columns = torch.stack(expected)[None], torch.stack(expected_smooth).T[None]
    assert torch.allclose(outputs, rows) and torch.allclose(smooth, columns)
    factors = random(*rows.shape), random(*columns.shape)
    leaves = [query, key, value, hidden, weight]
    found, wanted = (
        torch.autograd.grad(sum((f * o).sum() for f, o in zip(factors, both, strict=True)), leaves)
        for both in ((outputs, smooth), (rows, columns))
    )
    assert all(torch.allclose(a, b) for a, b in zip(found, wanted, strict=True))


@given(st.lists(TREES, min_size=1, max_size=3))
def test_padding_is_bounded(trees: list[Tree]) -> None:
    seen, _ = written(trees)
    tree = RecurrentTree(seen)
    assert (
        len(seen) <= tree.num_read <= max(MAX_PADDING * len(seen), SHORT_TOKENS * len(nodes_of(seen.numpy())))
    )


def test_nodes_go_on_from_their_parents() -> None:
    # Two tokens, then branches of one, of two and of one; then another tree.
    assert nodes_of(np.array([6, 6, 3, 5, 5, 6, 8, 8])) == [
        PackedNode(0, 2, -1, 0),
        PackedNode(2, 3, 0, 1),
        PackedNode(3, 5, 0, 1),
        PackedNode(5, 6, 0, 1),
        PackedNode(6, 8, -1, 0),
    ]
    assert nodes_of(np.array([6])) == [PackedNode(0, 1, -1, 0)]


def test_a_kind_of_layer_that_is_not_known_is_refused() -> None:
    assert not layers.has_state(SimpleNamespace())
    assert not layers.has_state(SimpleNamespace(layer_types=["full_attention", "sliding_attention"]))
    assert layers.has_state(SimpleNamespace(layer_types=["full_attention", "linear_attention"]))
    with pytest.raises(ConfigError, match=r"layers of kind mamba.*over prefix trees; known: full_attention"):
        layers.has_state(SimpleNamespace(layer_types=["mamba", "full_attention"]))


def test_layers_that_reach_their_tokens_otherwise_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version of transformers may do so, and would read the pack as one row."""
    layer = torch.nn.Module()
    layer.A_log = torch.nn.Parameter(torch.zeros(1))
    decoder = torch.nn.Module()
    decoder.layer = layer
    model = SimpleNamespace(get_decoder=lambda: decoder)
    with pytest.raises(ConfigError, match=r"no function causal_conv1d_fn, .* that vlrl was tested with"):
        layers.install(model)
    module = sys.modules[type(layer).__module__]
    monkeypatch.setattr(module, "causal_conv1d_fn", convolved, raising=False)
    monkeypatch.setattr(module, "torch_chunk_gated_delta_rule", decaying, raising=False)
    layers.install(model)
    once = module.causal_conv1d_fn  # type: ignore[attr-defined]
    layers.install(model)
    assert module.causal_conv1d_fn is once is not convolved  # type: ignore[attr-defined]
    hidden, weight = torch.randn(1, 2, 6), torch.randn(2, 4)
    assert torch.equal(once(hidden, weight), convolved(hidden, weight))


def test_running_sums_are_products_within_the_rule() -> None:
    numbers = torch.randn(2, 3, 5, dtype=torch.float64)
    with layers._OrderedSums():
        assert torch.allclose(numbers.cumsum(dim=1), torch.cumsum(numbers, 1))
        assert torch.allclose(numbers.cumsum(-1), torch.cumsum(numbers, -1))
