"""The products of vLLM's LoRA on a CPU, where all tokens have the same adapter.

vLLM's own copy A and B for every token before they multiply, since each could have another: a prompt of 1,600
tokens costs twice to four times as much as without an adapter. With one adapter it is two plain products.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor


def use_plain_products(wrappers: Iterable[Any]) -> str:
    """Replace the products of vLLM's wrappers for CPUs; slot 0 holds the one adapter.

    Returns:
        Classes of wrappers that are others than this is written for, and are left alone.
    """
    unknown = set()
    for wrapper in wrappers:
        if type(wrapper).__name__ == "PunicaWrapperCPU":
            wrapper.add_lora_linear = _add_products
        else:
            unknown.add(type(wrapper).__name__)
    return ", ".join(sorted(unknown))


def _add_products(
    onto: Tensor,
    inputs: Tensor,
    lows: Sequence[Tensor],
    highs: Sequence[Tensor],
    scale: float,
    widths: Sequence[int],
    **_: Any,
) -> None:
    """Add scale · inputs·Aᵀ·Bᵀ of each layer that is packed into one to its columns of `onto`.

    Args:
        onto: [n, sum of widths].
        inputs: [n, in], of the same dtype.
        lows: A of each, [1, 1, rank, in].
        highs: B of each, [1, 1, width, rank].
        scale: a factor.
        widths: of each.
    """
    start = 0
    for low, high, width in zip(lows, highs, widths, strict=True):
        columns = onto[:, start : start + width]
        columns.addmm_(inputs @ low[0, 0].T, high[0, 0].T, alpha=scale)
        start += width
