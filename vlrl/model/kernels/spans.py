"""Attention within the spans of one sequence: the windows, images and frames of a vision tower.

transformers' towers of the Qwen family call an attention function once for every span, unless its name has
"flash" in it: that one is given all spans at once. Here are three of those: one that CUDA has a kernel for,
one of plain attention, by lengths, and one for CPUs.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vlrl.choices import MachineChoice
from vlrl.model.kernels.nodes import attend_within
from vlrl.model.kernels.trial import HeadShape, failure_of
from vlrl.model.parts import VISION_PARTS, part_of

SpanKind = Literal["each", "by_run", "by_length", "varlen"]
"""How a tower attends: by transformers' call for each span, one for each run of spans of one length, one for
each length, or one for all."""
ATTENTION = "attention of the vision tower"
WANTED = "one call a layer"
ON_CPU = "a call for each run of windows of one length"
ON_CPU_COST = "its small products are prepared one by one on some processors, twice the time of a window"
LOW_PRECISION = (torch.bfloat16, torch.float16)
"""What flash kernels compute in."""
TRIAL_SPANS = (0, 64, 128, 144, 240)
"""Where the spans of the trial begin, and their end."""


def by_length(
    query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int, scale: float
) -> Tensor:
    """Spans of one length as one batch of plain attention: for a Qwen2.5-VL image up to four lengths.

    Args:
        query: [T, heads, d].
        key: like query.
        value: like query.
        starts: [spans + 1] where spans begin, and T.
        longest: tokens of the longest.
        scale: of the scores.

    Returns:
        [T, heads, d].
    """
    of_length: defaultdict[int, list[int]] = defaultdict(list)
    places = starts.tolist()
    for start, end in pairwise(places):
        of_length[end - start].append(start)
    taken, outputs = [], []
    for length, firsts in of_length.items():
        first = torch.tensor(firsts, device=query.device)
        index = (first[:, None] + torch.arange(length, device=query.device)).flatten()
        q, k, v = (x[index].view(-1, length, *x.shape[1:]).transpose(1, 2) for x in (query, key, value))
        output = F.scaled_dot_product_attention(q, k, v, scale=scale)
        taken.append(index)
        outputs.append(output.transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[torch.cat(taken).argsort()]


def varlen(query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int, scale: float) -> Tensor:
    """All spans in one call of CUDA's flash attention; see `by_length` for what it is given."""
    from torch.nn.attention.varlen import varlen_attn

    starts = starts.to(torch.int32)
    output: Tensor = varlen_attn(query, key, value, starts, starts, longest, longest, scale=scale)  # type: ignore[assignment]
    return output


def by_run(query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int, scale: float) -> Tensor:
    """Torch's flash attention for CPUs, called for each run; see `by_length` for what it is given."""
    q, k, v = (x.transpose(0, 1)[None] for x in (query, key, value))
    return attend_within(q, k, v, list(pairwise(starts.tolist())), scale)[0].transpose(0, 1)


TRIED: Mapping[SpanKind, str] = {"varlen": "varlen_attn", "by_run": "torch's flash attention"}
"""Names of kernels that are tried on a device before they are used."""
KERNELS: Mapping[SpanKind, Callable[..., Tensor]] = {
    "by_length": by_length,
    "varlen": varlen,
    "by_run": by_run,
}


def choose(model: Any, device: torch.device) -> tuple[SpanKind, MachineChoice | None]:
    """How the tower of a model attends, and how that was chosen; None if there is nothing to choose.

    On a CPU one call for each length, whose spans are copied together, was not faster by more than noise.
    """
    layers = list(_layers(model))
    if not layers or layers[0].config._attn_implementation != "sdpa":
        return "each", None
    heads = HeadShape(layers[0].num_heads, layers[0].num_heads, layers[0].head_dim, model.dtype)
    if device.type != "cuda":
        if failure := _failure("by_run", device, heads):
            return "each", MachineChoice(ATTENTION, ON_CPU, "transformers' own", failure, ON_CPU_COST)
        return "by_run", MachineChoice.as_wanted(
            ATTENTION, ON_CPU, "torch's flash attention, tried against plain attention"
        )
    if failure := _failure("varlen", device, heads):
        return "by_length", MachineChoice(
            ATTENTION,
            WANTED,
            "a call for each length of windows",
            failure,
            "up to four calls for one in a layer",
        )
    return "varlen", MachineChoice.as_wanted(ATTENTION, WANTED, "torch's varlen_attn, tried on this GPU")


def _failure(kind: SpanKind, device: torch.device, heads: HeadShape) -> str:
    """What is wrong with a kernel on a device; "" if nothing is."""
    if kind == "varlen" and heads.dtype not in LOW_PRECISION:
        return f"flash kernels compute in bfloat16, and model.dtype is {heads.dtype}".replace("torch.", "")

    def of(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def attend(*inputs: Tensor) -> Tensor:
            starts = torch.tensor(TRIAL_SPANS, device=device)
            tokens = (x[0].transpose(0, 1) for x in inputs)
            return kernel(*tokens, starts, 96, heads.size**-0.5)

        return attend

    failure = failure_of(of(KERNELS[kind]), of(by_length), heads, TRIAL_SPANS[-1], device)
    return f"{TRIED[kind]} does not work here: {failure}" if failure else ""


def install(model: Any, kind: SpanKind) -> None:
    """Let a model's vision tower attend by one of KERNELS; "each" leaves it as it is."""
    if kind == "each":
        return
    from transformers import AttentionInterface

    name = f"vlrl_flash_{kind}"
    AttentionInterface.register(name, partial(attend, kind))
    for layer in _layers(model):
        layer.config._attn_implementation = name


def _layers(model: Any) -> Iterator[Any]:
    """The tower's layers that get the beginnings of spans."""
    for name, module in model.named_modules():
        in_tower = part_of(f"{name}.") in VISION_PARTS and hasattr(module, "head_dim")
        if in_tower and "cu_seqlens" in inspect.signature(module.forward).parameters:
            yield module


def attend(
    kind: SpanKind,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    cu_seq_lens_q: Tensor,
    max_length_q: int,
    **options: Any,
) -> tuple[Tensor, None]:
    """Transformers' attention function: [1, heads, T, d] to [1, T, heads, d].

    Args:
        kind: of KERNELS.
        module: the layer.
        query: [1, heads, T, d].
        key: like query.
        value: like query.
        attention_mask: None, as spans say it all.
        scaling: of the scores.
        cu_seq_lens_q: [spans + 1] where spans begin, and T.
        max_length_q: tokens of the longest.
        options: the same of keys.
    """
    tokens = (x[0].transpose(0, 1) for x in (query, key, value))
    return KERNELS[kind](*tokens, cu_seq_lens_q, max_length_q, scaling)[None], None
