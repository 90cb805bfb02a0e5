"""A critic: a model of the policy's kind whose head answers with one number a token."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch, TreeModel


class ValueHead(nn.Module):
    """hidden · weight + bias in float32, whatever the weights' dtype; it begins at 0 everywhere."""

    def __init__(self, hidden_size: int, dtype: torch.dtype) -> None:
        """Begin at a value of 0, which needs no seed and is within any range of rewards."""
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(1, dtype=dtype))

    def forward(self, hidden: Tensor) -> Tensor:
        """[M, H] to [M] float32."""
        return hidden.float() @ self.weight.float() + self.bias.float()


class TreeValues(TreeModel):
    """A critic; `forward` gives the value of the state before each trained token.

    It is read where the token is predicted, so a prefix that branches share is read once for each.
    """

    def __init__(self, model: Any, **options: Any) -> None:
        """Put a value head in place of the model's own; see `TreeModel` for the options."""
        text = model.config.get_text_config()
        super().__init__(model, **options)
        model.lm_head = nn.Identity()  # the weights of one that is not tied are freed
        self.head = ValueHead(text.hidden_size, next(model.parameters()).dtype)

    def forward(self, batch: DeviceBatch, kept: StepFeatures | None = None) -> Tensor:
        """[M] float32 values of the trained tokens; arguments as `predicting` has them."""
        values: Tensor = self.head(self.predicting(batch, kept))
        return values
