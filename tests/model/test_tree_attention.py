"""Attention over trees: every way of computing it is plain causal attention along each token's own path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_model import model_of
from torch import Tensor
from trees import FORESTS, Forest, seen_until

from vlrl.errors import ConfigError
from vlrl.model import attention, tree_attention
from vlrl.model.attention import KINDS, choose, heads_of, require_device
from vlrl.model.kernels import nodes
from vlrl.model.kernels.nodes import NodeAttention
from vlrl.model.kernels.trial import HeadShape
from vlrl.model.tree_attention import BlockAttention, DenseAttention

HEADS, KEY_VALUE_HEADS, WIDTH = 4, 2, 16


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
    forest: Forest, window: int | None, block_tokens: int, kept: bool
) -> None:
    seen = seen_until(forest)
    inputs = inputs_of(len(seen))
    expected = results(lambda q, k, v: plain(seen, q, k, v, window), inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_attention, "BLOCK_TOKENS", block_tokens)
        patch.setattr(nodes, "TOGETHER", block_tokens)
        patch.setattr(tree_attention, "KEPT_PAIRS", tree_attention.KEPT_PAIRS if kept else 0)
        for kind in (DenseAttention, BlockAttention, NodeAttention):
            attention = kind(seen)
            for _layer in range(2):
                found = results(lambda *x, a=attention: a.attend(*x, scale=0.3, window=window), inputs)
                for ours, theirs in zip(found, expected, strict=True):
                    assert torch.allclose(ours, theirs, atol=1e-10)


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


def test_nodes_keep_their_inputs_and_no_mask_of_more_than_a_few_tokens() -> None:
    seen = seen_until([(3000, [(200, []), (200, [(900, [])]), (10, []), (10, [])])])
    inputs = [x.float().detach().requires_grad_() for x in inputs_of(len(seen))]
    kept: list[Tensor] = []
    tree = NodeAttention(seen)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: (kept.append(x), x)[1], lambda x: x):
        tree.attend(*inputs, scale=None, window=None)
    masks = [part.mask for parts in tree._parts.values() for part in parts if part.mask is not None]
    assert [mask.shape[-2:] for mask in masks] == [(20, 20)]
    assert sum(x.numel() for x in kept) == len(seen) * (3 * HEADS * WIDTH + HEADS)


SHAPE = HeadShape(HEADS, KEY_VALUE_HEADS, WIDTH, torch.bfloat16)


def test_which_attention_is_used_is_said() -> None:
    kind, choice = choose("auto", torch.device("cpu"), SHAPE)
    assert kind == choice.used == choice.wanted == "nodes"
    assert "torch's flash attention, tried against blocks" in choice.reason
    assert choose("dense", torch.device("cpu"), SHAPE)[0] == "dense"
    require_device("auto", torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"trainer.attention=flex needs a GPU"):
        require_device("flex", torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"trainer.attention=nodes needs a CPU"):
        require_device("nodes", torch.device("cuda"))
    assert set(KINDS) == {"dense", "blocks", "nodes", "flex"}


@pytest.mark.parametrize(
    ("device", "wanted", "cost"),
    [("cuda", "flex", "a call for every 64 tokens"), ("cpu", "nodes", "twice the time of attention")],
)
def test_blocks_in_place_of_the_best_are_said_with_reason_and_cost(
    device: str, wanted: str, cost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "failure_of", lambda *_: "RuntimeError: no C compiler was found")
    kind, choice = choose("auto", torch.device(device), SHAPE)
    assert (kind, choice.wanted, choice.used) == ("blocks", wanted, "blocks")
    assert "no C compiler was found" in choice.reason
    assert cost in choice.cost
    monkeypatch.setattr(attention, "failure_of", lambda *_: "")
    assert choose("auto", torch.device(device), SHAPE)[0] == wanted


def test_flex_is_tried_at_the_model_s_own_heads(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that compiles at one size may not at another: 128 wide heads need twice the memory of 64."""
    model = model_of(tiny_model)
    own = model.get_decoder().config
    tried: list[HeadShape] = []
    monkeypatch.setattr(attention, "failure_of", lambda a, b, heads, size, device: tried.append(heads) or "")
    choose("auto", torch.device("cuda"), heads_of(model))
    size = own.hidden_size // own.num_attention_heads
    assert tried == [HeadShape(own.num_attention_heads, own.num_key_value_heads, size, torch.float32)]


@pytest.mark.parametrize(
    ("num_keys", "num_slices", "queries", "keys"), [(2, 1, 8, 2), (2, 2, 4, 1), (2, 4, 2, 2), (None, 2, 4, 4)]
)
def test_ranks_that_share_a_sequence_have_a_share_of_the_heads(
    num_keys: int | None, num_slices: int, queries: int, keys: int
) -> None:
    """Key heads that are too few to share out are repeated, as `SharedAttention` does."""
    config = SimpleNamespace(num_attention_heads=8, num_key_value_heads=num_keys, hidden_size=512)
    model = SimpleNamespace(get_decoder=lambda: SimpleNamespace(config=config), dtype=torch.float32)
    assert heads_of(model, num_slices) == HeadShape(queries, keys, 64, torch.float32)


@pytest.mark.parametrize(("option", "named"), [("s_aux", "attention sinks"), ("softcap", "soft caps")])
def test_attention_of_another_kind_is_refused_and_not_left_out(option: str, named: str) -> None:
    """gpt-oss, of which InternVL3.5 has one, would be trained without what its weights were made for."""
    tree = DenseAttention(torch.tensor([3, 3, 3], dtype=torch.int32))
    given = {"s_aux": torch.zeros(HEADS), "softcap": 50.0}[option]
    with pytest.raises(ConfigError, match=f"Identity: vlrl does not train language models with {named}"):
        attention.attend(torch.nn.Identity(), *inputs_of(3), None, tree=tree, **{option: given})
    attention.attend(torch.nn.Identity(), *inputs_of(3), None, tree=tree, **{option: None})
