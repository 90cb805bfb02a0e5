"""The config's selections, combined."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vlrl.config.algorithm import AlgorithmConfig, bound_selections
from vlrl.errors import ConfigError


def selected(
    logprobs: Tensor, advantages: Tensor, entropies: Tensor, algorithm: AlgorithmConfig, seed: int
) -> tuple[Tensor, Tensor]:
    """The product of all selections' factors and the sum of their penalties, [N] each.

    Args:
        logprobs: [N] float64 nats, of all ranks' tokens, on the host.
        advantages: [N] float64.
        entropies: [N] float64 nats.
        algorithm: the config's.
        seed: of this update.

    Raises:
        ConfigError: if a selection returns something else.
    """
    factors, penalties = torch.ones_like(logprobs), torch.zeros_like(logprobs)
    for chosen, bound in zip(algorithm.selections, bound_selections(algorithm), strict=True):
        returned = bound(logprobs.clone(), advantages.clone(), entropies.clone(), seed=seed)
        if problem := selection_problem(returned, len(logprobs)):
            raise ConfigError(f"algorithm.selections: {chosen.name!r} {problem}")
        factors, penalties = factors * returned[0], penalties + returned[1]
    return factors, penalties


def selection_problem(returned: Any, num_tokens: int) -> str:
    """What is wrong with what a selection returned; empty if it is two numbers for each token."""
    if not isinstance(returned, tuple) or len(returned) != 2 or not all(map(torch.is_tensor, returned)):
        return f"must return (factors [N], penalties [N]), not {type(returned).__name__}"
    for name, tensor in zip(("factors", "penalties"), returned, strict=True):
        if tensor.shape != (num_tokens,) or not tensor.is_floating_point():
            return f"must return {name} as [{num_tokens}] floats, not {list(tensor.shape)} {tensor.dtype}"
        if not (torch.isfinite(tensor) & (tensor >= 0)).all():
            return f"must return {name} that are finite and not negative"
    return ""
