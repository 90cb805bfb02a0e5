"""The attention that a language model trains with: chosen once, and registered with transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vlrl.choices import MachineChoice
from vlrl.errors import ConfigError
from vlrl.model.kernels.nodes import TOGETHER, NodeAttention
from vlrl.model.kernels.trial import HeadShape, failure_of
from vlrl.model.tree_attention import (
    BLOCK_TOKENS,
    BlockAttention,
    DenseAttention,
    FlexAttention,
    TreeAttention,
)

Kind = Literal["dense", "blocks", "nodes", "flex"]
KINDS: dict[Kind, type[TreeAttention]] = {
    "dense": DenseAttention,
    "blocks": BlockAttention,
    "nodes": NodeAttention,
    "flex": FlexAttention,
}
NAME = "vlrl_tree"
"""Of the attention function among transformers'."""
ATTENTION = "attention of the language model"
BLOCKS_COST = {
    "flex": f"in each layer a call for every {BLOCK_TOKENS} tokens in place of one for all",
    "nodes": "twice the time of attention over thousands of tokens, and masks and copies of keys in memory",
}
NOT_IN_TREES = {"s_aux": "attention sinks (gpt-oss)", "softcap": "soft caps on attention's scores (Gemma 2)"}
"""What transformers passes to an attention function → what it stands for."""
TRIAL_TREE = (350,) * 150 + (250,) * 100 + (350,) * 100
"""The tree of the trial, as `seen_until`: blocks that are seen whole, in part and not at all."""


def require_device(wanted: Kind | Literal["auto"], device: torch.device) -> None:
    """Raise ConfigError for an attention of the other device: FlexAttention has no backward pass on a CPU."""
    if wanted == "flex" and device.type != "cuda":
        raise ConfigError("trainer.attention=flex needs a GPU; on a CPU set it to auto")
    if wanted == "nodes" and device.type != "cpu":
        raise ConfigError("trainer.attention=nodes needs a CPU; on a GPU set it to auto")


def choose(
    wanted: Kind | Literal["auto"], device: torch.device, heads: HeadShape
) -> tuple[Kind, MachineChoice]:
    """The attention to use, and how it was chosen.

    "auto" is nodes on a CPU and FlexAttention on a GPU, if a trial there runs and is right, else blocks.

    Args:
        wanted: trainer.attention.
        device: that trains.
        heads: of the model, as a rank has them.
    """
    if wanted != "auto":
        return wanted, MachineChoice.as_wanted(ATTENTION, wanted, "as trainer.attention says")
    best: Kind = "flex" if device.type == "cuda" else "nodes"
    if failure := _trial(best, device, heads):
        reason = f"{KINDS[best].__name__} does not work here: {failure}"
        return "blocks", MachineChoice(ATTENTION, best, "blocks", reason, BLOCKS_COST[best])
    how = {
        "flex": "compiled, and tried against blocks on this GPU",
        "nodes": f"torch's flash attention, tried against blocks; up to {TOGETHER} tokens share a mask",
    }
    return best, MachineChoice.as_wanted(ATTENTION, best, how[best])


def layer_configs(config: Any) -> Sequence[Any]:
    """The configs of all language layers where transformers keeps one for each (Gemma 4), else the one."""
    return list(config.per_layer_config) if getattr(config, "is_heterogeneous", False) else [config]


def require_causal(text_config: Any) -> None:
    """Raise ConfigError if tokens of a language model also see later ones, by its config."""
    if kind := getattr(text_config, "use_bidirectional_attention", None):
        raise ConfigError(
            f"model.path: by text_config.use_bidirectional_attention={kind!r} tokens see each other in both "
            "directions (tokens of an image do in Gemma 4 26B-A4B and 31B). Neither vlrl's attention over "
            "prefix trees nor vLLM on a CPU computes that; train Gemma 4 E2B or E4B, or another family"
        )


def heads_of(model: Any, num_slices: int = 1) -> HeadShape:
    """The heads of a model's language layers; of a rank's share of them, if ranks share a sequence.

    Where layers differ, those of the widest: a kernel that can do these can do narrower ones.
    """
    config = max(
        layer_configs(model.get_decoder().config), key=lambda layer: getattr(layer, "head_dim", None) or 0
    )
    queries = int(config.num_attention_heads)
    keys = int(getattr(config, "num_key_value_heads", None) or queries)
    size = int(getattr(config, "head_dim", None) or config.hidden_size // queries)
    keys = keys if keys % num_slices == 0 else queries  # too few to share out: see `SharedAttention`
    return HeadShape(queries // num_slices, keys // num_slices, size, model.dtype)


def _trial(kind: Kind, device: torch.device, heads: HeadShape) -> str:
    """What is wrong with an attention on a device; "" if nothing is."""

    def of(kind: type[TreeAttention]) -> Callable[..., Tensor]:
        def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            tree = kind(torch.tensor(TRIAL_TREE, dtype=torch.int32, device=device))
            return tree.attend(query, key, value, scale=None, window=None)

        return attend

    return failure_of(of(KINDS[kind]), of(BlockAttention), heads, len(TRIAL_TREE), device)


def install(model: Any) -> None:
    """Let a model's language part attend by `attend`; without a tree it goes on as before.

    Args:
        model: a vision-language model of transformers, its attention "sdpa" or "eager".

    Raises:
        ConfigError: if its tokens see later ones.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    require_causal(model.get_decoder().config)
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

    Raises:
        ConfigError: if the model attends in a way that no tree does.
    """
    if tree is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        found: Tensor = sdpa_attention_forward(module, query, key, value, attention_mask, **options)[0]
        return found, None
    for option, name in NOT_IN_TREES.items():
        if options.get(option) is not None:
            raise ConfigError(f"{type(module).__name__}: vlrl does not train language models with {name}")
    output = tree.attend(
        query, key, value, scale=options.get("scaling"), window=options.get("sliding_window")
    )
    return output.transpose(1, 2).contiguous(), None
