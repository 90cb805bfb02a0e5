"""The routers of mixtures of experts in transformers: which classes they are, and how they score experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from vlrl.errors import ConfigError

Output: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""What a router returns: logits [T, num_experts], what each chosen expert counts [T, top_k], and which these
are [T, top_k] int64."""


@dataclass(frozen=True, slots=True)
class RouterKind:
    """How a router scores experts.

    Attributes:
        weights: (router, logits, experts [T, top_k]) → [T, top_k], what each of them counts.
        probabilities: (logits) → [T, num_experts] float32 that add up to 1.
    """

    weights: Callable[[Any, Tensor, Tensor], Tensor]
    probabilities: Callable[[Tensor], Tensor]


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=-1, dtype=torch.float32)


def _softmax_weights(router: Any, logits: Tensor, experts: Tensor) -> Tensor:
    """Qwen's: probabilities of the chosen, which add up to 1 unless a config says otherwise."""
    chosen = _softmax(logits).gather(-1, experts)
    if getattr(router, "norm_topk_prob", True):
        chosen = chosen / chosen.sum(dim=-1, keepdim=True)
    return chosen.to(logits.dtype)


def _sigmoid(logits: Tensor) -> Tensor:
    """DeepSeek-V3's (arXiv 2412.19437, Eq. 19): scores in units of their sum."""
    scores = logits.float().sigmoid()
    return scores / scores.sum(dim=-1, keepdim=True)


def _sigmoid_weights(router: Any, logits: Tensor, experts: Tensor) -> Tensor:
    """GLM's, from DeepSeek-V3: scores without the bias that the choice is made with."""
    chosen = logits.sigmoid().gather(-1, experts)
    if router.norm_topk_prob:
        chosen = chosen / (chosen.sum(dim=-1, keepdim=True) + 1e-20)
    return chosen * float(router.routed_scaling_factor)


_OF_SOFTMAX = RouterKind(_softmax_weights, _softmax)
_OF_SIGMOID = RouterKind(_sigmoid_weights, _sigmoid)
ROUTERS: Mapping[str, RouterKind] = {
    "Qwen3VLMoeTextTopKRouter": _OF_SOFTMAX,
    "Qwen3MoeTopKRouter": _OF_SOFTMAX,
    "Qwen3_5MoeTopKRouter": _OF_SOFTMAX,
    "Glm4vMoeTextTopkRouter": _OF_SIGMOID,
}
"""Class of a router in transformers, whose forward gives an `Output` → how it scores."""

RouterHook: TypeAlias = Callable[[RouterKind, int, Any, Any, Output], Output]
"""(kind, number of the layer, router, its inputs, what it returned) → what it returns instead."""


def hook_routers(model: Any, hook: RouterHook, option: str) -> int:
    """Have a hook answer for every router of a model; how many there are.

    Args:
        model: of transformers.
        hook: called after each router's forward pass.
        option: that asks for it, for the error.

    Raises:
        ConfigError: if the model has no router, or such as are not known here.
    """
    found = 0
    for number, layer in enumerate(model.get_decoder().layers):
        for module in layer.modules():
            if kind := ROUTERS.get(type(module).__name__):
                module.register_forward_hook(partial(hook, kind, number))
                found += 1
    if not found:
        raise ConfigError(
            f"{option}: {type(model).__name__} has no router of experts that vlrl knows "
            f"({', '.join(ROUTERS)}); leave the option out for a model without experts"
        )
    return found
