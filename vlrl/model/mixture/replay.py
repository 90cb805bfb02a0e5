"""Routing replay: the trainer's tokens go to the experts that the engine chose (R3, arXiv 2510.11370).

Two engines never compute the same last bits, and where two experts are nearly tied, the last bits decide:
then a token is computed by other weights than it was sampled with. So the choice is the engine's. What an
expert's answer counts is still the trainer's router's to say, and the router is trained by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from vlrl.errors import ConfigError, InternalError

WeightsFn: TypeAlias = Callable[[Any, Tensor, Tensor], Tensor]
"""(router, its logits [T, num_experts], experts [T, top_k] int64) → [T, top_k], what each expert counts."""


def _softmax(router: Any, logits: Tensor, experts: Tensor) -> Tensor:
    """Qwen's: probabilities of the chosen, which add up to 1 unless a config says otherwise."""
    chosen = torch.softmax(logits, dim=-1, dtype=torch.float32).gather(-1, experts)
    if getattr(router, "norm_topk_prob", True):
        chosen = chosen / chosen.sum(dim=-1, keepdim=True)
    return chosen.to(logits.dtype)


def _sigmoid(router: Any, logits: Tensor, experts: Tensor) -> Tensor:
    """GLM's, from DeepSeek-V3: scores without the bias that the choice is made with."""
    chosen = logits.sigmoid().gather(-1, experts)
    if router.norm_topk_prob:
        chosen = chosen / (chosen.sum(dim=-1, keepdim=True) + 1e-20)
    return chosen * float(router.routed_scaling_factor)


WEIGHTS: Mapping[str, WeightsFn] = {
    "Qwen3VLMoeTextTopKRouter": _softmax,
    "Qwen3MoeTopKRouter": _softmax,
    "Qwen3_5MoeTopKRouter": _softmax,
    "Glm4vMoeTextTopkRouter": _sigmoid,
}
"""Class of a router in transformers, whose forward gives (logits, weights, experts) → how it weighs."""


class RoutingReplay:
    """The choices for the present micro-batch, on the routers of a model of transformers."""

    def __init__(self, model: Any) -> None:
        """Hook every router.

        Raises:
            ConfigError: if the model has none, or such as are not known here.
        """
        self._experts: Tensor | None = None
        found = False
        for number, layer in enumerate(model.get_decoder().layers):
            for module in layer.modules():
                if weights := WEIGHTS.get(type(module).__name__):
                    module.register_forward_hook(partial(self._as_chosen, weights, number))
                    found = True
        if not found:
            raise ConfigError(
                f"generator.routing_replay: {type(model).__name__} has no router of experts that vlrl knows "
                f"({', '.join(WEIGHTS)}); leave the option out for a model without experts"
            )

    def set(self, routed_experts: Tensor | None) -> None:
        """Begin a micro-batch; holds until the next one, for layers computed again in the backward pass.

        Args:
            routed_experts: [T, num_layers, top_k], -1 where the router chooses itself; None for all tokens.
        """
        self._experts = routed_experts

    def _as_chosen(
        self, weights: WeightsFn, layer: int, router: nn.Module, inputs: Any, output: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """A router's (logits, weights, experts) with the engine's choices."""
        if self._experts is None:
            return output
        logits, _, own = output
        if len(self._experts) != len(own):
            raise InternalError(
                f"a router sees {len(own)} tokens of a micro-batch with choices of experts for "
                f"{len(self._experts)}"
            )
        chosen = self._experts[:, layer].to(own.device, own.dtype)
        experts = torch.where(chosen >= 0, chosen, own)
        return logits, weights(router, logits, experts), experts
