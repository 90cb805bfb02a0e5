"""FlexAttention: its lengths, its mask of blocks, and that it is compiled, and seldom, or does not run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention import flex_attention
from trees import FORESTS, Forest, seen_until

from vlrl.errors import EngineError
from vlrl.model import attention, tree_attention
from vlrl.model.kernels import flex
from vlrl.model.kernels.trial import HeadShape
from vlrl.model.tree_attention import DenseAttention, FlexAttention

WINDOWS = st.sampled_from([None, 1, 7, 50])
HEADS = (4, 2, 2)


class CountingBackend:
    """Compiles nothing: it counts the graphs that it is given, and runs them as they are."""

    def __init__(self) -> None:
        self.num_graphs = 0

    def __call__(self, graph: Any, inputs: Any) -> Callable[..., Any]:
        self.num_graphs += 1
        forward: Callable[..., Any] = graph.forward
        return forward


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingBackend]:
    """FlexAttention through the counting backend, with buckets of a few hundred tokens, trained on a CPU."""
    counting = CountingBackend()
    original = flex.compiled
    monkeypatch.setattr(flex, "compiled", lambda: original(counting))
    monkeypatch.setattr(flex, "SMALLEST", 256)
    # On a CPU it refuses inputs with gradient, as inductor has no backward pass for it there.
    monkeypatch.setattr(flex_attention, "_validate_device", lambda query, key, value: None)
    torch.compiler.reset()
    yield counting
    torch.compiler.reset()


def inputs_of(size: int, width: int = 16, trained: str = "qkv") -> list[Tensor]:
    generator = torch.Generator().manual_seed(size)
    made = [torch.randn(1, heads, size, width, generator=generator) for heads in HEADS]
    return [x.requires_grad_(name in trained) for name, x in zip("qkv", made, strict=True)]


def test_buckets_are_few_and_at_most_half_too_long() -> None:
    buckets = sorted({flex.bucket(size) for size in range(1, 2**17, 100)})
    assert buckets[:6] == [1024, 1536, 2048, 3072, 4096, 6144]
    assert len(buckets) == 15
    assert all(bucket % flex.BLOCK == 0 for bucket in buckets)
    assert all(size <= flex.bucket(size) < max(1025, 1.5 * size + 1) for size in range(1, 2**17, 100))
    up_to_a_million = {flex.bucket(size) for size in range(1, 2**20, 500)}
    assert 3 * 2 * len(up_to_a_million) <= flex.MOST_COMPILATIONS


@settings(max_examples=15, deadline=None)
@given(FORESTS, WINDOWS)
def test_the_mask_lists_every_block_that_has_a_seen_pair(forest: Forest, window: int | None) -> None:
    """Exactly those, as torch finds them by looking at every pair; under a window perhaps more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flex, "BLOCK", 16)
        patch.setattr(flex, "SMALLEST", 64)
        tree = FlexAttention(seen_until(forest))
        mask = flex.block_mask(tree._seen_until, tree._depths, window)
    size = len(tree._seen_until)
    expected = flex_attention.create_block_mask(mask.mask_mod, None, None, size, size, "cpu", BLOCK_SIZE=16)
    places = torch.arange(size)
    pairs = tree_attention.Rule(tree._seen_until).sees(places[:, None], places[None], window)
    blocks = pairs.view(size // 16, 16, size // 16, 16).transpose(1, 2)
    full = flex_attention._ordered_to_dense(mask.full_kv_num_blocks, mask.full_kv_indices, size // 16)[0, 0]
    partial = flex_attention._ordered_to_dense(mask.kv_num_blocks, mask.kv_indices, size // 16)[0, 0]
    assert blocks.all(3).all(2)[full.bool()].all()
    assert not (full & partial).any()
    assert (full | partial).bool()[blocks.any(3).any(2)].all()
    if window is None:
        assert torch.equal(mask.to_dense(), expected.to_dense())
        assert torch.equal(mask.full_kv_num_blocks, expected.full_kv_num_blocks)
        assert torch.equal(mask.q_num_blocks, expected.q_num_blocks)


def test_many_lengths_are_compiled_as_often_as_there_are_buckets(
    backend: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice each: graded and not, whichever of the inputs are; torch would give up after 8."""
    monkeypatch.setattr(flex, "BLOCK", 16)
    monkeypatch.setattr(flex, "SMALLEST", 32)
    lengths = (3, 20, 32, 33, 48, 49, 60, 64, 65, 80, 97, 128)
    buckets = {flex.bucket(length) for length in lengths}
    assert buckets == {32, 48, 64, 96, 128}
    graded = itertools.cycle([("qkv", True), ("q", True), ("v", True)])
    ungraded = itertools.cycle([("", True), ("qkv", False)])
    for length, *variants in zip(lengths, graded, ungraded, strict=False):
        for trained, enabled in variants:
            inputs = inputs_of(length, trained=trained)
            with torch.set_grad_enabled(enabled):
                seen = torch.full((length,), length, dtype=torch.int32)
                output = FlexAttention(seen).attend(*inputs, scale=0.3, window=None)
            assert output.requires_grad == (enabled and trained != "")
    assert backend.num_graphs == 2 * len(buckets)


def test_strides_do_not_count(backend: CountingBackend) -> None:
    """A length that fills its bucket is not padded, so it keeps the layout that the model gives it."""
    seen = torch.full((256,), 256, dtype=torch.int32)
    inputs = inputs_of(256, trained="")
    FlexAttention(seen).attend(*inputs, scale=0.3, window=None)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    assert not turned[0].is_contiguous()
    FlexAttention(seen).attend(*turned, scale=0.3, window=None)
    assert backend.num_graphs == 1


FOREST: Forest = [(60, [(40, []), (30, [(20, []), (50, [])])]), (70, [(10, []), (25, [])])]


@pytest.mark.parametrize("window", [None, 50])
@pytest.mark.parametrize("trained", ["qkv", "q", "v"])
def test_padding_and_gradients_are_those_of_the_dense_mask(
    backend: CountingBackend, window: int | None, trained: str
) -> None:
    seen, inputs = seen_until(FOREST), inputs_of(305, trained=trained)
    asked = [x for x in inputs if x.requires_grad]
    weights = torch.randn(1, 4, 305, 16, generator=torch.Generator().manual_seed(0))
    found, expected = (
        kind(seen).attend(*inputs, scale=0.3, window=window) for kind in (FlexAttention, DenseAttention)
    )
    assert torch.allclose(found, expected, atol=1e-5)
    gradients = [torch.autograd.grad((x * weights).sum(), asked) for x in (found, expected)]
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_trial_s_tree_passes_and_a_mask_that_hides_keys_does_not(
    backend: CountingBackend, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    heads, cpu = HeadShape(4, 2, 64, dtype), torch.device("cpu")
    assert attention._trial("flex", cpu, heads) == ""
    original = flex.block_mask

    def of_a_window(seen_until: Tensor, depths: Tensor, window: int | None) -> Any:
        return original(seen_until, depths, 100)

    monkeypatch.setattr(flex, "block_mask", of_a_window)
    assert "it differs from plain attention" in attention._trial("flex", cpu, heads)


def test_where_nothing_is_compiled_it_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uncompiled, torch computes all scores at once, with a warning that nobody sees in an actor's log."""
    monkeypatch.setattr(
        flex, "compiled", lambda: flex._fused
    )  # what torch.compile gives if it is switched off
    seen, inputs = torch.full((9,), 9, dtype=torch.int32), inputs_of(9, trained="")
    with pytest.raises(
        EngineError, match=r"not compiled here.*TORCHDYNAMO_DISABLE.*trainer.attention=blocks"
    ):
        FlexAttention(seen).attend(*inputs, scale=None, window=None)


def test_beyond_the_limit_it_raises_and_does_not_fall_back(
    backend: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [torch.full((length,), length, dtype=torch.int32) for length in (200, 300, 500)]
    config: Any = torch._dynamo.config
    FlexAttention(seen[0]).attend(*inputs_of(200, trained=""), scale=0.3, window=None)
    monkeypatch.setattr(config, "recompile_limit", 2)
    FlexAttention(seen[1]).attend(*inputs_of(300, trained=""), scale=0.3, window=None)
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        FlexAttention(seen[2]).attend(*inputs_of(500, trained=""), scale=0.3, window=None)


@pytest.mark.slow
def test_the_kernel_that_inductor_makes_for_a_cpu_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward, through the real compiler: it skips the blocks that the mask does not list."""
    monkeypatch.setattr(flex, "SMALLEST", 256)
    seen = seen_until([(150, [(300, []), (250, [])]), (40, [])])
    inputs = inputs_of(len(seen), width=32, trained="")
    for window in (None, 100):
        found, expected = (
            kind(seen).attend(*inputs, scale=0.25, window=window) for kind in (FlexAttention, DenseAttention)
        )
        assert torch.allclose(found, expected, atol=1e-5)
