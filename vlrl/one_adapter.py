"""The products of vLLM's LoRA on a CPU, where all tokens have the same adapter.

vLLM's own copy A and B for every token before they multiply, since each could have another: a prompt of 1,600
tokens costs twice to four times as much as without an adapter. With one adapter it is two plain products.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


def use_plain_products(wrappers: Iterable[Any]) -> None:
    """Replace the products of vLLM's wrappers, if they are those of the CPU; slot 0 holds the one adapter."""
    for wrapper in wrappers:
        if type(wrapper).__name__ == "PunicaWrapperCPU":
            wrapper._apply_shrink = _shrink
            wrapper._apply_expand = _expand


def _shrink(into: Tensor, inputs: Tensor, low: Tensor, scale: float) -> None:
    """Put scale · inputs·Aᵀ into `into`: [n, rank] from [n, in] and A as [1, 1, rank, in]."""
    plain = low[0, 0].to(into.dtype)
    torch.mul(inputs.to(into.dtype) @ plain.T, scale, out=into.view(-1, into.shape[-1]))


def _expand(
    onto: Tensor, inputs: Tensor, high: Tensor, start: int, width: int, add_inputs: bool = True
) -> None:
    """Add inputs·Bᵀ to columns of `onto` [n, out]: [n, rank] and B as [1, 1, width, rank]."""
    columns = onto[:, start : start + width]
    product = inputs.to(onto.dtype) @ high[0, 0].to(onto.dtype).T
    columns.add_(product) if add_inputs else columns.copy_(product)
