"""Which adapter acts on which token, where several policies are adapters on one model.

All adapters are called on all tokens, and what one gives for the tokens of another policy is dropped: every
rank of ZeRO-3 runs the same modules in the same order, whatever is in its micro-batch, and an adapter has
gradients from the tokens of its own policy alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vlrl.errors import InternalError


class PolicyMasks:
    """The tokens of the present micro-batch by policy, on the adapters of a model of transformers."""

    def __init__(self, model: Any) -> None:
        """Hook every adapter of the policies that `vlrl.model.lora.add_adapters` noted."""
        self._policies: tuple[str, ...] = model.vlrl_policies
        self._others: list[Tensor] = []
        """For each policy, [T] bool: the tokens that are not its own."""
        for layer in model.modules():
            halves = getattr(layer, "lora_B", None)
            for number, policy in enumerate(self._policies):
                if halves is not None and policy in halves:
                    halves[policy].register_forward_hook(partial(self._keep_own, number))

    @classmethod
    def of(cls, model: Any) -> PolicyMasks | None:
        """The masks of a model of several policies, however often it is wrapped; None of any other."""
        if getattr(model, "vlrl_policies", ()) and not hasattr(model, "vlrl_masks"):
            model.vlrl_masks = cls(model)
        found: PolicyMasks | None = getattr(model, "vlrl_masks", None)
        return found

    def set(self, policy_ids: Tensor | None, num_tokens: int, num_trained: int) -> None:
        """Begin a micro-batch.

        It holds until the next one, so a layer that is computed again in the backward pass finds it.

        Args:
            policy_ids: [T] int64; None if no token is of any policy.
            num_tokens: T.
            num_trained: tokens that are trained, which all are of a policy.

        Raises:
            InternalError: for trained tokens of no policy.
        """
        if policy_ids is None and num_trained:
            raise InternalError(
                f"{num_trained} tokens to train, and their policies were not packed with them"
            )
        ids = torch.full((num_tokens,), -1) if policy_ids is None else policy_ids
        self._others = [ids != number for number in range(len(self._policies))]

    def _keep_own(self, number: int, half: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        """What an adapter gives for its own tokens, of [..., T, out]; exact zeros for the others."""
        others = self._others[number].to(output.device)
        if output.shape[-2] != len(others):
            raise InternalError(
                f"a layer with adapters sees {output.shape[-2]} rows of a micro-batch of {len(others)} "
                "tokens, so it is not known which policy a row is of; leave the layer out of lora.targets"
            )
        return output.masked_fill(others[:, None], 0.0)
