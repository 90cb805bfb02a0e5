"""The auxiliary loss that keeps experts evenly used: Switch Transformers (arXiv 2101.03961, Eq. 4).

A layer's loss is E Σ_e f_e P_e: of E experts, f_e are the chosen ones of a token, on average, that are expert
e, and P_e is its mean probability. It is top_k if all are used alike, and up to E if one is. Only P_e has a
gradient. The mean over layers is trained with a coefficient, and a micro-batch has the share of it that its
trained tokens have of the batch's loss.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vlrl.model.mixture.routers import Output, RouterKind, hook_routers


class RouterBalance:
    """The loss of the present micro-batch, on the routers of a model of transformers."""

    def __init__(self, model: Any, coef: float) -> None:
        """Hook every router, after `RoutingReplay` if there is one; raises ConfigError if there is none."""
        self._coef = coef
        self._share: Tensor | None = None
        self._of_layers: dict[int, Tensor] = {}
        self._num_layers = hook_routers(model, self._with_loss, "trainer.router_aux_coef")

    def set(self, share: Tensor) -> None:
        """Begin a micro-batch that has this share of the batch's loss; a scalar."""
        self._share = share
        self._of_layers = {}

    @property
    def loss(self) -> float:
        """The present micro-batch's share of the mean over layers, without the coefficient."""
        if self._share is None or not self._of_layers:
            return 0.0
        return float(self._share * torch.stack(list(self._of_layers.values())).mean())

    def _with_loss(self, kind: RouterKind, layer: int, router: Any, inputs: Any, output: Output) -> Output:
        """What a router returned, whose backward pass has this layer's loss, too.

        It is not added to the trained loss from outside: ZeRO-3 has a layer's weights gathered only while the
        backward pass is in that layer.
        """
        if self._share is None or not torch.is_grad_enabled():
            return output
        logits, weights, experts = output
        probabilities = kind.probabilities(logits)
        num_experts = probabilities.shape[1]
        chosen = torch.bincount(experts.flatten(), minlength=num_experts).float() / len(experts)
        loss = num_experts * torch.dot(chosen, probabilities.mean(0))
        self._of_layers[layer] = loss.detach()
        scaled = loss * (self._coef * self._share / self._num_layers)
        return logits, _Together.apply(weights, scaled), experts  # type: ignore[no-untyped-call]


class _Together(torch.autograd.Function):
    """A tensor as it is; whoever asks for its gradient asks for a loss's as well."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, loss: Tensor) -> Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        return grads[0], torch.ones((), dtype=torch.float32, device=grads[0].device)
