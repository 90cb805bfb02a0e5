"""Which attention a language model trains with: chosen once, told to transformers by its own interface."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from vlrl.errors import ConfigError
from vlrl.model.tree_attention import (
    BLOCK_TOKENS,
    KEPT_PAIRS,
    BlockAttention,
    DenseAttention,
    FlexAttention,
    TreeAttention,
)

Kind = Literal["dense", "blocks", "flex"]
KINDS: dict[Kind, type[TreeAttention]] = {
    "dense": DenseAttention,
    "blocks": BlockAttention,
    "flex": FlexAttention,
}
NAME = "vlrl_tree"
"""Of the attention function among transformers'."""
TRIAL_TOLERANCE = 1e-2
"""FlexAttention must agree with the blocks to this, on unit normal inputs; TF32 is within it."""


def choose(wanted: Kind | Literal["auto"], device: torch.device) -> tuple[Kind, str]:
    """The attention to use, and why, in words for the run's start.

    "auto" is blocks on a CPU and FlexAttention on a GPU, if a trial there compiles and is right.

    Raises:
        ConfigError: if FlexAttention is wanted on a CPU, where it has no backward pass.
    """
    if wanted == "flex" and device.type != "cuda":
        raise ConfigError("trainer.attention=flex needs a GPU; on a CPU set it to auto")
    if wanted != "auto":
        return wanted, f"{wanted}, as trainer.attention says"
    blocks = f"blocks of about {BLOCK_TOKENS} queries; no mask is kept of more than {KEPT_PAIRS:,} pairs"
    if device.type != "cuda":
        return "blocks", blocks
    failure = _trial(device)
    if failure:
        return "blocks", f"{blocks}; FlexAttention does not work here: {failure}"
    return "flex", "FlexAttention, compiled; tried against blocks"


def _trial(device: torch.device) -> str:
    """What is wrong with FlexAttention on a device; "" if nothing is."""
    seen_until = torch.tensor([64] * 32 + [48] * 16 + [64] * 16, dtype=torch.int32, device=device)
    query, key, value = (torch.randn(1, heads, 64, 64, device=device) for heads in (4, 2, 2))
    results = []
    try:
        for kind in (FlexAttention, BlockAttention):
            inputs = [x.clone().requires_grad_() for x in (query, key, value)]
            output = kind(seen_until).attend(*inputs, scale=None, window=None)
            results.append([output, *torch.autograd.grad(output.square().sum(), inputs)])
    except Exception as error:  # whatever a compiler for one of many GPUs may raise
        return f"{type(error).__name__}: {str(error)[:200]}"
    worst = max(float((a - b).abs().max()) for a, b in zip(*results, strict=True))
    return "" if worst < TRIAL_TOLERANCE else f"it differs from SDPA by {worst:.1e}"


def install(model: Any) -> None:
    """Let a model's language part attend by `attend`; without a tree it goes on as before.

    Args:
        model: a vision-language model of transformers, its attention "sdpa" or "eager".
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.get_decoder().config._attn_implementation = NAME


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    tree: TreeAttention | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Transformers' attention function: [1, heads, T, d] to [1, T, heads, d].

    Args:
        module: the layer.
        query: [1, heads, T, d].
        key: [1, key_value_heads, T, d].
        value: like key.
        attention_mask: of a forward pass without a tree.
        tree: the micro-batch's, passed through the model by keyword.
        options: scaling, and sliding_window in layers that have one.
    """
    if tree is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        found: Tensor = sdpa_attention_forward(module, query, key, value, attention_mask, **options)[0]
        return found, None
    output = tree.attend(
        query, key, value, scale=options.get("scaling"), window=options.get("sliding_window")
    )
    return output.transpose(1, 2).contiguous(), None
