"""A trial of a kernel: its output and gradients against plain attention's in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

TOLERANCE = {torch.float32: 1e-2, torch.bfloat16: 2e-2, torch.float16: 1e-2}
"""Largest difference as a share of the largest entry; TF32 and the rounding of gradients are within it."""


@dataclass(frozen=True, slots=True)
class HeadShape:
    """What a kernel is compiled or chosen for.

    Attributes:
        num_heads: of queries.
        num_key_heads: of keys and values.
        size: of one head.
        dtype: of all of them.
    """

    num_heads: int
    num_key_heads: int
    size: int
    dtype: torch.dtype

    def inputs(self, num_tokens: int, device: torch.device) -> list[Tensor]:
        """Unit normal query, key and value, each [1, its heads, num_tokens, size]."""
        generator = torch.Generator().manual_seed(0)
        heads = (self.num_heads, self.num_key_heads, self.num_key_heads)
        shapes = [(1, number, num_tokens, self.size) for number in heads]
        return [torch.randn(shape, generator=generator).to(device, self.dtype) for shape in shapes]


def failure_of(
    kernel: Callable[..., Tensor],
    reference: Callable[..., Tensor],
    heads: HeadShape,
    num_tokens: int,
    device: torch.device,
) -> str:
    """What is wrong with a kernel, in words; "" if its output and gradients are the reference's.

    Args:
        kernel: the function of query, key and value that is tried.
        reference: computes the same; it is given the same values in float32.
        heads: of the three.
        num_tokens: of the three.
        device: where it is tried.
    """
    try:
        inputs = heads.inputs(num_tokens, device)
        found = _results(kernel, inputs)
        expected = _results(reference, [x.float() for x in inputs])
    except Exception as error:  # whatever a compiler or driver for one of many GPUs may raise
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    worst = max(_difference(*pair) for pair in zip(found, expected, strict=True))
    allowed = TOLERANCE[heads.dtype]
    return (
        "" if worst <= allowed else f"it differs from plain attention by {worst:.1e}, allowed is {allowed:g}"
    )


def _results(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    output = function(*inputs)
    return [output.detach(), *torch.autograd.grad(output.float().square().sum(), inputs)]


def _difference(found: Tensor, expected: Tensor) -> float:
    """Largest difference as a share of the largest entry; nan counts as infinite."""
    share = float((found.float() - expected).abs().max() / expected.abs().max())
    return share if share == share else float("inf")
