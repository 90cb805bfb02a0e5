"""Logprobs of given tokens without ever holding all logits: linear, log-softmax and gather by chunks.

Logits of M tokens over a vocabulary of V take 4·M·V bytes, and a plain formula keeps several such tensors
until its backward pass: 5 GB each for 8,192 tokens of Qwen2.5-VL. Here the forward pass goes through the
tokens, a few at a time, and keeps one normalizer a token; with it the backward pass can go through the
vocabulary, a few columns at a time, so that each row of the head's gradient is one product over all tokens,
without rounding between chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

FLOAT32_BYTES = 4
CHUNK_MIB = {"cpu": 64, "cuda": 256}
"""Of one chunk of logits, unless the config says another; benchmarks/head_memory.py measures some. With a
vocabulary of 150,000 tokens 64 MiB are 110 rows, too few to keep a GPU busy; 256 are 441."""
CHUNK_BYTES = CHUNK_MIB["cpu"] * 2**20


def chunk_bytes_on(device_type: str, wanted_mib: int | None) -> int:
    """Bytes of one chunk of float32 logits: trainer.logits_chunk_mib, or what fits the device."""
    return (wanted_mib or CHUNK_MIB[device_type]) * 2**20


class HeadLogprobs(nn.Module):
    """A language-model head that answers with logprobs of targets instead of logits.

    It registers the head's own parameters as its own: ZeRO-3 gathers what a module holds itself, for its
    forward and again for its backward pass, and a tied weight stays one parameter.
    """

    bias: Tensor | None

    def __init__(
        self,
        head: nn.Linear,
        *,
        temperature: float,
        banned_token_ids: Sequence[int],
        chunk_bytes: int,
        cap: float | None = None,
    ) -> None:
        """Args: see `token_logprobs`; `chunk_bytes` bounds one chunk of float32 logits."""
        super().__init__()
        self.weight = head.weight
        self.register_parameter("bias", head.bias)
        self._temperature, self._banned, self._cap = temperature, list(banned_token_ids), cap
        self._num_logits = max(1, chunk_bytes // FLOAT32_BYTES)

    def forward(
        self, hidden: Tensor, target_ids: Tensor, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `token_logprobs`."""
        return token_logprobs(
            hidden,
            self.weight,
            self.bias,
            target_ids,
            temperature=self._temperature,
            banned_token_ids=self._banned,
            num_logits=self._num_logits,
            allowed=allowed,
            cap=self._cap,
        )


def token_logprobs(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target_ids: Tensor,
    *,
    temperature: float,
    banned_token_ids: Sequence[int],
    num_logits: int,
    allowed: Tensor | None = None,
    cap: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Log-softmax of ((hidden · weightᵀ + bias) / temperature) at the targets; banned tokens are impossible.

    Args:
        hidden: [M, H] last hidden states; the product has their dtype, the softmax is float32.
        weight: [V, H], of the same dtype.
        bias: [V] or None.
        target_ids: [M] int64.
        temperature: divides the logits.
        banned_token_ids: ids that get no probability.
        num_logits: most logits held at a time, a chunk; at least one token's (forward) or one column's
            (backward). Two float32 tensors of this size live at once, and one of hidden's dtype; with a cap
            one more.
        allowed: [M, words] int32, a bit for each token that could be sampled there, the lowest of a word
            first; tokens beyond the last word could not. None: all could.
        cap: what no logit exceeds, before the temperature: cap · tanh(logit / cap), as Gemma has it.

    Returns:
        (logprobs [M] float32 nats, entropy [M] float32 nats), both differentiable.
    """
    banned = torch.as_tensor(list(banned_token_ids), dtype=torch.int64, device=hidden.device)
    logprobs, entropy = _TokenLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, target_ids, banned, temperature, num_logits, allowed, cap
    )
    return logprobs, entropy


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target_ids: Tensor,
        banned: Tensor,
        temperature: float,
        num_logits: int,
        allowed: Tensor | None,
        cap: float | None,
    ) -> tuple[Tensor, Tensor]:
        num_tokens = len(hidden)
        normalizer = hidden.new_empty(num_tokens, dtype=torch.float32)
        logprobs, entropy = torch.empty_like(normalizer), torch.empty_like(normalizer)
        size = max(1, num_logits // len(weight))
        for start in range(0, num_tokens, size):
            rows = slice(start, start + size)
            logits = _logits(hidden[rows], weight, bias, temperature, cap)
            here = None if allowed is None else allowed[rows]
            impossible = _Impossible(banned, here, slice(0, len(weight)))
            impossible.fill(logits, -torch.inf)
            normalizer[rows] = torch.logsumexp(logits, dim=-1)
            logprobs[rows] = logits.gather(1, target_ids[rows, None]).squeeze(1) - normalizer[rows]
            probs = (logits - normalizer[rows, None]).exp_()
            # What is impossible adds nothing, but 0 · -inf is not a number.
            entropy[rows] = normalizer[rows] - torch.linalg.vecdot(probs, impossible.fill(logits, 0.0))
        ctx.save_for_backward(hidden, weight, bias, target_ids, banned, normalizer, entropy, allowed)
        ctx.temperature, ctx.num_logits, ctx.cap = temperature, num_logits, cap
        ctx.set_materialize_grads(False)
        return logprobs, entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Gradients: d logprob_i / d logit_iv = (1[v = target_i] - p_iv) / temperature.

        And, where the loss has a part for it, d entropy_i / d logit_iv = -p_iv (log p_iv + entropy_i) /
        temperature. A cap has the slope 1 - (capped logit / cap)².
        """
        hidden, weight, bias, target_ids, banned, normalizer, entropy, allowed = ctx.saved_tensors
        of_logprobs, of_entropy = (
            None if grad is None else grad[:, None] / ctx.temperature for grad in grads
        )
        wants_hidden, wants_weight, wants_bias = ctx.needs_input_grad[:3]
        grad_hidden = torch.zeros(hidden.shape, dtype=torch.float32, device=hidden.device)
        grad_weight = torch.empty_like(weight) if wants_weight else None
        grad_bias = torch.empty_like(bias) if wants_bias else None
        scale = torch.zeros_like(normalizer)[:, None] if of_logprobs is None else of_logprobs
        size = max(1, ctx.num_logits // max(1, len(hidden)))
        for start in range(0, len(weight), size):
            columns = slice(start, min(start + size, len(weight)))
            part = None if bias is None else bias[columns]
            logits = _logits(hidden, weight[columns], part, ctx.temperature, ctx.cap)
            slope = (
                None if ctx.cap is None else (logits * (ctx.temperature / ctx.cap)).square_().neg_().add_(1)
            )
            own_logprobs = logits.sub_(normalizer[:, None])
            if of_entropy is None:
                grad = own_logprobs.exp_().mul_(-scale)
            else:
                probs = own_logprobs.exp()
                grad = own_logprobs.add_(entropy[:, None]).mul_(-of_entropy).sub_(scale).mul_(probs)
            inside = (target_ids >= columns.start) & (target_ids < columns.stop)
            place = (target_ids - columns.start).clamp(0, columns.stop - columns.start - 1)
            # One place a row: nothing meets, so the order of CUDA's atomic additions has no effect.
            grad.scatter_add_(1, place[:, None], scale * inside[:, None])
            _Impossible(banned, allowed, columns).fill(grad, 0.0)
            if slope is not None:
                grad.mul_(slope)
            if grad_bias is not None:
                grad_bias[columns] = grad.sum(0)
            low = grad.to(hidden.dtype)
            if grad_weight is not None:
                torch.mm(low.T, hidden, out=grad_weight[columns])
            if wants_hidden:
                grad_hidden += low @ weight[columns]
        return (
            grad_hidden.to(hidden.dtype) if wants_hidden else None,
            grad_weight,
            grad_bias,
            *(None,) * 6,
        )


class _Impossible:
    """Which of some tokens' logits are no token's that could be sampled, for these columns."""

    def __init__(self, banned: Tensor, allowed: Tensor | None, columns: slice) -> None:
        self._banned = banned[(banned >= columns.start) & (banned < columns.stop)] - columns.start
        self._refused = None if allowed is None else ~_bits(allowed, columns)

    def fill(self, values: Tensor, with_value: float) -> Tensor:
        """Write a value in their places."""
        values.index_fill_(1, self._banned, with_value)
        return values if self._refused is None else values.masked_fill_(self._refused, with_value)


def _bits(words: Tensor, columns: slice) -> Tensor:
    """[rows, words] int32 to [rows, columns] bool, by bytes: words would take four for each bit."""
    first, last = columns.start // 32, -(-columns.stop // 32)
    here = words[:, first:last].contiguous().view(torch.uint8)
    powers = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=words.device)
    bits = (here[..., None] & powers).ne_(0).flatten(1).bool()
    bits = nn.functional.pad(bits, (0, max(0, 32 * (last - first) - bits.shape[1])))
    start = columns.start - 32 * first
    return bits[:, start : start + columns.stop - columns.start]


def _logits(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, temperature: float, cap: float | None
) -> Tensor:
    """[rows, H] and [columns, H] to [rows, columns] float32, a tensor of its own."""
    product = hidden @ weight.T if bias is None else torch.addmm(bias, hidden, weight.T)
    logits = product.float()
    if cap is not None:
        logits = logits.div_(cap).tanh_().mul_(cap)
    return logits.div_(temperature)
