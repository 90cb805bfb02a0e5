"""Which library multiplies float32 matrices on a CPU: torch's default is not the quicker one everywhere.

torch gives float32 products to MKL, which leaves AVX-512 unused on other processors than Intel's. oneDNN, in
torch too, uses it, but is asked only where bfloat16 within a product is allowed; on a processor without tiles
for bfloat16 it computes in float32 even so. That it does is tried, not believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from vlrl.choices import MachineChoice

PRODUCTS = "float32 products"
COST = "about half of the rate, as measured on Zen 5"
SIZE = 512
"""Rows and columns of the products that are tried."""
MOST_ERROR = 1e-5
"""Against float64, relative to the largest entry. float32 comes to 1e-6, bfloat16 to 1e-3."""
LARGE_BLOCKS_FROM = 768
"""Queries of a call of torch's attention for CPUs that it computes 256 at a time; fewer go by 64 or by 32."""


def choose_products(processor: Mapping[str, Any] | None = None) -> MachineChoice:
    """Let this process multiply float32 matrices by oneDNN where MKL leaves AVX-512 unused.

    No clock decides, so runs that are begun twice or resumed compute the same bits.

    Args:
        processor: as `torch.cpu.get_capabilities` describes one; this one if not given.
    """
    found = torch.cpu.get_capabilities() if processor is None else processor
    name = str(found.get("cpu_name", "unknown processor"))
    allow_onednn(False)
    has_avx512 = found.get("avx512_bw", False)  # torch asks for vl and dq too, which come with it
    if "Intel" in name or not has_avx512:
        return MachineChoice.as_wanted(PRODUCTS, "torch's default", name)
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return MachineChoice(
            PRODUCTS, "oneDNN", "torch's default", f"torch was built without it; {name}", COST
        )
    allow_onednn(True)
    error = largest_error()
    if error > MOST_ERROR:
        allow_onednn(False)
        reason = f"oneDNN is not as exact on {name}: relative error {error:.0e}"
        return MachineChoice(PRODUCTS, "oneDNN", "torch's default", reason, COST)
    reason = f"MKL uses half of the vectors of {name}; relative error {error:.0e}"
    return MachineChoice.as_wanted(PRODUCTS, "oneDNN", reason)


def allow_onednn(allowed: bool) -> None:
    """Set what is named after precision, and decides on a CPU who computes a float32 product."""
    torch.set_float32_matmul_precision("medium" if allowed else "highest")


@contextmanager
def products_of_attention(num_queries: int) -> Iterator[None]:
    """Leave a call's small blocks to MKL: to prepare a product of oneDNN takes longer than to compute them.

    Args:
        num_queries: of the call.
    """
    if not has_small_blocks(num_queries):
        yield
        return
    asked = torch.get_float32_matmul_precision()
    allow_onednn(False)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(asked)


def has_small_blocks(num_queries: int) -> bool:
    """Whether blocks of a call of attention are too small for oneDNN, where that multiplies."""
    return torch.get_float32_matmul_precision() != "highest" and num_queries < LARGE_BLOCKS_FROM


def largest_error() -> float:
    """Largest error of products as a forward and a backward pass have them, see MOST_ERROR."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(SIZE, SIZE, generator=generator) for _ in range(2))
    return max(_error(left, right), _error(left.T, right), _error(left, right.T))


def _error(left: Tensor, right: Tensor) -> float:
    exact = left.double() @ right.double()
    return float((left @ right - exact).abs().max() / exact.abs().max())
