"""The products of vLLM's LoRA on a CPU, each adapter's for its own tokens together.

vLLM's own copy A and B for every token before they multiply, since each could have another: a prompt of 1,600
tokens costs twice to four times as much as without an adapter. With one adapter it is two plain products,
with several two for each that has tokens in the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from torch import Tensor


def use_plain_products(wrappers: Iterable[Any]) -> str:
    """Replace the products of vLLM's wrappers for CPUs; where there is one adapter it is in slot 0.

    Returns:
        Classes of wrappers that are others than this is written for, and are left alone.
    """
    unknown = set()
    for wrapper in wrappers:
        if type(wrapper).__name__ == "PunicaWrapperCPU":
            wrapper.add_lora_linear = partial(_add_products, wrapper)
        else:
            unknown.add(type(wrapper).__name__)
    return ", ".join(sorted(unknown))


def _add_products(
    wrapper: Any,
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
        wrapper: vLLM's, which knows the slot of each token's adapter.
        onto: [n, sum of widths].
        inputs: [n, in], of the same dtype.
        lows: A of each, [num_slots, 1, rank, in].
        highs: B of each, [num_slots, 1, width, rank].
        scale: a factor.
        widths: of each.
    """
    for slot, rows in _rows_by_slot(wrapper, len(lows[0]), len(inputs)):
        mine, start = inputs if rows is None else inputs[rows], 0
        for low, high, width in zip(lows, highs, widths, strict=True):
            columns = onto[:, start : start + width]
            if rows is None:
                columns.addmm_(mine @ low[slot, 0].T, high[slot, 0].T, alpha=scale)
            else:
                columns.index_add_(0, rows, mine @ low[slot, 0].T @ high[slot, 0].T, alpha=scale)
            start += width


def _rows_by_slot(wrapper: Any, num_slots: int, num_rows: int) -> Iterator[tuple[int, Tensor | None]]:
    """The tokens of each slot that has some; None for all of them. Slot -1 has no adapter."""
    if num_slots == 1:
        yield 0, None
        return
    slots = wrapper.token_lora_indices[:num_rows]
    for slot in slots.unique().tolist():
        rows = (slots == slot).nonzero()[:, 0]
        if slot >= 0:
            yield slot, None if len(rows) == num_rows else rows
