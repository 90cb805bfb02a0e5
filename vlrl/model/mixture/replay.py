"""Routing replay: the trainer's tokens go to the experts that the engine chose (R3, arXiv 2510.11370).

Two engines never compute the same last bits, and where two experts are nearly tied, the last bits decide:
then a token is computed by other weights than it was sampled with. So the choice is the engine's. What an
expert's answer counts is still the trainer's router's to say, and the router is trained by it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vlrl.errors import InternalError
from vlrl.model.mixture.routers import Output, RouterKind, hook_routers


class RoutingReplay:
    """The choices for the present micro-batch, on the routers of a model of transformers."""

    def __init__(self, model: Any) -> None:
        """Hook every router; raises ConfigError if there is none."""
        self._experts: Tensor | None = None
        hook_routers(model, self._as_chosen, "generator.routing_replay")

    def set(self, routed_experts: Tensor | None) -> None:
        """Begin a micro-batch; holds until the next one, for layers computed again in the backward pass.

        Args:
            routed_experts: [T, num_layers, top_k], -1 where the router chooses itself; None for all tokens.
        """
        self._experts = routed_experts

    def _as_chosen(self, kind: RouterKind, layer: int, router: Any, inputs: Any, output: Output) -> Output:
        """What a router returned, with the engine's choices."""
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
        return logits, kind.weights(router, logits, experts), experts
