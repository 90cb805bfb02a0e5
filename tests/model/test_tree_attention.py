"""Attention over trees: every way of computing it is plain causal attention along each token's own path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vlrl.errors import ConfigError
from vlrl.model import tree_attention
from vlrl.model.attention import KINDS, choose
from vlrl.model.tree_attention import BlockAttention, DenseAttention, FlexAttention

HEADS, KEY_VALUE_HEADS, WIDTH = 4, 2, 16

Tree = tuple[int, list[Any]]
TREES = st.recursive(
    st.tuples(st.integers(1, 25), st.just([])),
    lambda children: st.tuples(st.integers(1, 25), st.lists(children, max_size=3)),
    max_leaves=8,
)
FORESTS = st.lists(TREES, min_size=1, max_size=4)


def seen_until(forest: list[Tree]) -> Tensor:
    """Nodes of so many tokens in preorder."""
    found: list[int] = []

    def write(tree: Tree) -> None:
        size, children = tree
        start = len(found)
        found.extend([0] * size)
        for child in children:
            write(child)
        found[start : start + size] = [len(found)] * size

    for tree in forest:
        write(tree)
    return torch.tensor(found, dtype=torch.int32)


def inputs_of(size: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(size)
    heads = (HEADS, KEY_VALUE_HEADS, KEY_VALUE_HEADS)
    return [
        torch.randn(1, n, size, WIDTH, generator=generator, dtype=torch.float64).requires_grad_()
        for n in heads
    ]


def plain(seen: Tensor, q: Tensor, k: Tensor, v: Tensor, window: int | None) -> Tensor:
    """The definition: softmax over the last `window` tokens of each query's path."""
    seen_by = torch.zeros(len(seen), len(seen), dtype=torch.bool)
    for query in range(len(seen)):
        path = [key for key in range(query + 1) if query < seen[key]]
        seen_by[query, path if window is None else path[-window:]] = True
    k, v = (x.repeat_interleave(HEADS // KEY_VALUE_HEADS, dim=1) for x in (k, v))
    scores = (q @ k.transpose(2, 3) * 0.3).masked_fill(~seen_by, -torch.inf)
    return scores.softmax(-1) @ v


def results(attend: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    output = attend(*inputs)
    return [output.detach(), *torch.autograd.grad(output.sin().sum(), inputs)]


@settings(max_examples=15, deadline=None)
@given(FORESTS, st.sampled_from([None, 1, 7, 50]), st.sampled_from([4, 32]), st.booleans())
def test_every_way_is_causal_attention_along_the_path(
    forest: list[Tree], window: int | None, block_tokens: int, kept: bool
) -> None:
    seen = seen_until(forest)
    inputs = inputs_of(len(seen))
    expected = results(lambda q, k, v: plain(seen, q, k, v, window), inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_attention, "BLOCK_TOKENS", block_tokens)
        patch.setattr(tree_attention, "KEPT_PAIRS", tree_attention.KEPT_PAIRS if kept else 0)
        for kind in (DenseAttention, BlockAttention):
            attention = kind(seen)
            for _layer in range(2):
                found = results(lambda *x, a=attention: a.attend(*x, scale=0.3, window=window), inputs)
                for ours, theirs in zip(found, expected, strict=True):
                    assert torch.allclose(ours, theirs, atol=1e-10)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@settings(max_examples=5, deadline=None)
@given(FORESTS, st.sampled_from([None, 7]))
def test_flex_attention_has_the_same_rule(forest: list[Tree], window: int | None) -> None:
    """Forward only: it is compiled, and trained with, on a GPU (tests/gpu)."""
    seen = seen_until(forest)
    inputs = [x.detach() for x in inputs_of(len(seen))]
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(tree_attention, "FLEX_TOKENS", 128)
        found = FlexAttention(seen).attend(*inputs, scale=0.3, window=window)
        expected = DenseAttention(seen).attend(*inputs, scale=0.3, window=window)
    assert torch.allclose(found, expected, atol=1e-6)


def test_a_long_sequence_is_never_compared_with_itself_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No mask and no scores beyond a block times a path, forward or backward."""
    seen = seen_until([(3000, [(200, []), (200, [(900, [])]), (300, [])])])
    shapes: list[torch.Size] = []
    original = tree_attention._sdpa

    def watched(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float | None) -> Tensor:
        shapes.append(mask.shape)
        return original(q, k, v, mask, scale)

    monkeypatch.setattr(tree_attention, "_sdpa", watched)
    inputs = [x.float().detach().requires_grad_() for x in inputs_of(len(seen))]
    BlockAttention(seen).attend(*inputs, scale=None, window=None).sum().backward()
    pairs = [shape.numel() for shape in shapes[: len(shapes) // 2]]
    assert max(pairs) <= tree_attention.BLOCK_TOKENS * 3 // 2 * 4300
    visible = 3000**2 / 2 + 500 * 3100 + 900 * (3200 + 450) + 200 * 3100
    assert sum(pairs) < 1.1 * visible  # against 4600² of a dense mask


def test_which_attention_is_used_is_said() -> None:
    kind, reason = choose("auto", torch.device("cpu"))
    assert kind == "blocks" and "blocks of about 64 queries" in reason
    assert choose("dense", torch.device("cpu"))[0] == "dense"
    with pytest.raises(ConfigError, match=r"trainer.attention=flex needs a GPU"):
        choose("flex", torch.device("cpu"))
    assert set(KINDS) == {"dense", "blocks", "flex"}
