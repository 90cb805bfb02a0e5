"""Chunked logprobs against the formula written out: the same values and gradients, whatever the chunk."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from vlrl.model.head_logprobs import HeadLogprobs, token_logprobs


def plain(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    temperature: float,
    banned: list[int],
    allowed: Tensor | None = None,
    cap: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    logits = nn.functional.linear(hidden, weight, bias).float()
    logits = (logits if cap is None else cap * torch.tanh(logits / cap)) / temperature
    mask = torch.zeros_like(logits, dtype=torch.bool) if allowed is None else ~allowed
    mask[:, banned] = True
    logprobs = torch.log_softmax(logits.masked_fill(mask, -torch.inf), dim=-1)
    entropy = -(logprobs.exp() * logprobs.masked_fill(mask, 0.0)).sum(-1)
    return logprobs.gather(1, targets[:, None])[:, 0], entropy


def inputs(
    num_tokens: int, width: int, vocab: int, dtype: torch.dtype, *, with_bias: bool, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype).requires_grad_()

    return normal(num_tokens, width), normal(vocab, width), normal(vocab) if with_bias else None


@settings(max_examples=40, deadline=None)
@given(
    num_tokens=st.integers(0, 9),
    width=st.integers(1, 8),
    vocab=st.integers(2, 20),
    temperature=st.floats(0.2, 3.0),
    num_logits=st.integers(1, 400),
    with_bias=st.booleans(),
    bonus=st.sampled_from([0.0, 0.7]),
    cap=st.sampled_from([None, 0.5, 30.0]),
    seed=st.integers(0, 2**16),
    data=st.data(),
)
def test_values_and_gradients_are_the_formulas(
    num_tokens: int, width: int, vocab: int, temperature: float, num_logits: int, with_bias: bool,
    bonus: float, cap: float | None, seed: int, data: st.DataObject,
) -> None:  # fmt: skip
    banned = data.draw(st.lists(st.integers(0, vocab - 2), unique=True))
    targets = torch.tensor(data.draw(st.lists(st.integers(0, vocab - 1), min_size=num_tokens, max_size=num_tokens)), dtype=torch.int64)  # fmt: skip  # noqa: E501
    allowed = torch.tensor([t not in banned for t in targets.tolist()], dtype=torch.bool)
    hidden, weight, bias = inputs(num_tokens, width, vocab, torch.float32, with_bias=with_bias, seed=seed)
    leaves = [x for x in (hidden, weight, bias) if x is not None]
    share = torch.randn(num_tokens, generator=torch.Generator().manual_seed(seed)) * allowed
    expected, expected_entropy = plain(hidden, weight, bias, targets, temperature, banned, cap=cap)
    found, entropy = token_logprobs(
        hidden, weight, bias, targets, temperature=temperature, banned_token_ids=banned,
        num_logits=num_logits, cap=cap,
    )  # fmt: skip
    assert torch.allclose(found, expected, atol=1e-4)
    assert torch.allclose(entropy, expected_entropy, atol=1e-4)

    def gradients(logprobs: Tensor, entropy: Tensor) -> tuple[Tensor, ...]:
        loss = torch.where(allowed, logprobs * share, 0.0).sum()
        if bonus:  # a loss without a part for the entropy goes another way
            loss = loss - bonus * (entropy * share.cos()).sum()
        return torch.autograd.grad(loss, leaves)

    for a, b in zip(gradients(found, entropy), gradients(expected, expected_entropy), strict=True):
        assert torch.allclose(a, b, atol=1e-4 * (1 + float(b.abs().max() if b.numel() else 0.0)))


@pytest.mark.parametrize("num_logits", [1, 64, 10**6])
def test_bfloat16_is_as_near_to_float32_as_the_plain_formula(num_logits: int) -> None:
    hidden, weight, _ = inputs(64, 48, 96, torch.bfloat16, with_bias=False)
    targets = torch.arange(64) % 96
    exact = [x.detach().float().requires_grad_() for x in (hidden, weight)]

    def run(h: Tensor, w: Tensor, chunked: bool) -> list[Tensor]:
        if chunked:
            out, _ = token_logprobs(
                h, w, None, targets, temperature=0.8, banned_token_ids=[3], num_logits=num_logits
            )
        else:
            out, _ = plain(h, w, None, targets, 0.8, [3])
        kept = out.where(out.isfinite(), 0.0)
        return [out.detach(), *torch.autograd.grad(kept.sum(), [h, w])]

    truth = run(*exact, chunked=False)
    finite = truth[0].isfinite()
    for ours, theirs, right in zip(run(hidden, weight, True), run(hidden, weight, False), truth, strict=True):
        ours, theirs, right = (x[finite] if x.dim() == 1 else x for x in (ours, theirs, right))
        error = float((ours.float() - right).norm() / right.norm())
        assert error <= 1.1 * float((theirs.float() - right).norm() / right.norm()) + 1e-6
        assert error < 2e-2


def test_a_banned_target_is_impossible_and_pulls_nothing() -> None:
    hidden, weight, _ = inputs(2, 4, 6, torch.float32, with_bias=False)
    logprobs, entropy = token_logprobs(
        hidden, weight, None, torch.tensor([5, 1]), temperature=1.0, banned_token_ids=[5], num_logits=6
    )
    assert logprobs[0] == -torch.inf
    assert entropy.isfinite().all()
    logprobs[1].backward()
    assert weight.grad is not None
    assert weight.grad[5].eq(0).all()
    assert hidden.grad is not None
    assert hidden.grad[0].eq(0).all()


def words_of(allowed: Tensor) -> Tensor:
    """[M, V] bool to [M, words] int32, the lowest bit of a word first, as vLLM and xgrammar have them."""
    num_words = -(-allowed.shape[1] // 32)
    bits = torch.zeros(len(allowed), 32 * num_words, dtype=torch.int64)
    bits[:, : allowed.shape[1]] = allowed
    words = (bits.view(len(allowed), num_words, 32) << torch.arange(32)).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


@settings(max_examples=40, deadline=None)
@given(
    num_tokens=st.integers(1, 9),
    vocab=st.integers(20, 140),
    num_logits=st.integers(1, 1500),
    with_bias=st.booleans(),
    cap=st.sampled_from([None, 0.5]),
    seed=st.integers(0, 1000),
)
def test_what_a_grammar_refuses_is_impossible_at_its_token_alone(
    num_tokens: int, vocab: int, num_logits: int, with_bias: bool, cap: float | None, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(num_tokens, vocab, generator=generator) < 0.3
    banned = [int(torch.randint(vocab - 1, (1,), generator=generator))]
    targets = torch.randint(vocab, (num_tokens,), generator=generator)
    targets[targets == banned[0]] = vocab - 1
    allowed[torch.arange(num_tokens), targets] = True
    results = []
    for chunked in (True, False):
        hidden, weight, bias = inputs(num_tokens, 8, vocab, torch.float32, with_bias=with_bias, seed=seed)
        if chunked:
            logprobs, entropy = token_logprobs(
                hidden, weight, bias, targets, temperature=0.7, banned_token_ids=banned,
                num_logits=num_logits, allowed=words_of(allowed), cap=cap,
            )  # fmt: skip
        else:
            logprobs, entropy = plain(hidden, weight, bias, targets, 0.7, banned, allowed.clone(), cap)
        (logprobs @ torch.linspace(-1, 2, num_tokens) + entropy.sum()).backward()
        of_bias = [] if bias is None else [bias.grad]
        results.append([logprobs, entropy, hidden.grad, weight.grad, *of_bias])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_token_beyond_the_grammars_vocabulary_is_impossible() -> None:
    """A teacher's head may be padded to more rows than the policy's."""
    hidden, weight, _ = inputs(3, 8, 70, torch.float32, with_bias=False)
    allowed = words_of(torch.ones(3, 32, dtype=torch.bool))
    targets = torch.tensor([0, 31, 5])
    found, _ = token_logprobs(
        hidden, weight, None, targets, temperature=1.0, banned_token_ids=[], num_logits=10**6, allowed=allowed
    )
    expected = torch.log_softmax(hidden @ weight[:32].T, -1).gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(found, expected)


def test_a_frozen_head_gets_no_gradient_and_hidden_states_do() -> None:
    head = nn.Linear(4, 6).requires_grad_(False)
    hidden = torch.randn(3, 4, requires_grad=True)
    logprobs, _ = HeadLogprobs(head, temperature=1.0, banned_token_ids=[], chunk_bytes=8)(
        hidden, torch.tensor([0, 1, 2])
    )
    logprobs.sum().backward()
    assert head.weight.grad is None
    assert hidden.grad is not None


def test_no_tensor_is_larger_than_a_chunk_or_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward, every tensor that any operation makes."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    num_tokens, width, vocab, num_logits = 64, 4, 1024, 2048
    largest = 0

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            largest = max([largest, *(x.numel() for x in tree_leaves(out) if isinstance(x, Tensor))])
            return out

    hidden, weight, _ = inputs(num_tokens, width, vocab, torch.float32, with_bias=False)
    with Sizes():
        logprobs, _ = token_logprobs(
            hidden, weight, None, torch.arange(num_tokens), temperature=1.0, banned_token_ids=[7],
            num_logits=num_logits,
        )  # fmt: skip
        logprobs.sum().backward()
    assert largest == vocab * width  # the head itself and its gradient; all logits would be 65,536
    assert largest >= num_logits
