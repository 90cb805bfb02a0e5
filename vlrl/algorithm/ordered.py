"""Sums whose order is fixed, so that the same numbers give the same bits however busy the machine is (law 8).

A float sum depends on the order of its terms. Advanced indexing's backward pass (`index_put_` with
accumulate) adds atomically from several threads on a CPU, `index_add` and `scatter_add` do on CUDA: the order
is that in which threads arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from vlrl.errors import EngineError

ENVIRONMENT: Mapping[str, str] = {
    # cuBLAS gives each stream a workspace of its own; torch refuses deterministic products without.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    # Sums inside NVLink switches have no promised order; rings and trees have.
    "NCCL_ALGO": "^NVLS,NVLSTree",
}
"""What CUDA's libraries must find when they start; values that the user has set are kept."""


def rows_of(table: Tensor, index: Tensor) -> Tensor:
    """table[index], with gradient; where the index repeats, gradients are added in the index's order.

    An embedding's backward pass is ordered on both: on a CPU each thread owns rows of the table, on CUDA the
    index is sorted first.

    Args:
        table: [T, H].
        index: [M] int64; it may repeat.

    Returns:
        [M, H].
    """
    return F.embedding(index, table)


def sums_by(index: Tensor, values: Tensor, size: int) -> Tensor:
    """Sums of the values that share an index, each added up in the values' order; without gradient.

    Args:
        index: [M] int64 below size, in any order.
        values: [M] or [M, C], floating.
        size: number of sums.

    Returns:
        [size] or [size, C]; 0 where the index does not occur.
    """
    lengths = torch.bincount(index, minlength=size)
    order = index.argsort(stable=True)
    return torch.segment_reduce(values.detach()[order], "sum", lengths=lengths, unsafe=True)


def choose_ordered(wanted: bool) -> None:
    """Let torch use ordered algorithms alone in this process, or whichever is fastest.

    Where an operation has none on CUDA, torch raises an error when it is called: see `ordered`.
    """
    torch.use_deterministic_algorithms(wanted)
    # It would write nan into every new tensor; nothing here reads what it has not written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


@contextmanager
def ordered() -> Iterator[None]:
    """Say what to do where an operation of a model's passes has no ordered algorithm.

    Raises:
        EngineError: in place of torch's error.
    """
    try:
        yield
    except RuntimeError as error:
        if "does not have a deterministic implementation" not in str(error):
            raise
        raise EngineError(
            f"trainer.deterministic: {str(error).split('.')[0]} on this device, so a run of this model "
            "cannot be repeated bit for bit; set trainer.deterministic=false to train without"
        ) from error
