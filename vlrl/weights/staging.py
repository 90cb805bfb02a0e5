"""Copies from a GPU into ordinary host memory at the speed of the bus, such as into a mapped segment.

CUDA copies at full speed, and beside other work, only into pinned memory. So a copy goes through one of two
pinned buffers: while one is filled by the GPU, the other is written to where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor

STAGE_BYTES = 64 * 2**20
"""Of each of the two buffers."""


class GpuTransfers:
    """The part of a copy that CUDA does."""

    def stages(self, source: Tensor) -> bool:
        """Whether a copy of it to the host needs a pinned buffer."""
        return source.is_cuda

    def buffer(self, num_bytes: int) -> Tensor:
        """A host buffer that the GPU can write to by itself; [num_bytes] uint8."""
        return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True)

    def start(self, buffer: Tensor, source: Tensor) -> Callable[[], object]:
        """Begin to copy into a buffer; the function blocks until it is done."""
        buffer.copy_(source, non_blocking=True)
        event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        wait: Callable[[], object] = event.synchronize
        return wait


class StagedCopies:
    """A context in which copies may be under way; at its end all are done.

    Example:
        with StagedCopies() as copies:
            copies.copy(on_gpu, into=mapped)
    """

    def __init__(self, transfers: GpuTransfers | None = None, stage_bytes: int = STAGE_BYTES) -> None:
        self._transfers, self._stage_bytes = transfers or GpuTransfers(), stage_bytes
        self._num_started = 0
        self._write_last: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish_last()
        self._write_last = None

    def copy(self, source: Tensor, *, into: Tensor) -> None:
        """Copy a flat tensor into host memory of its length; from the host it is done at once."""
        if not self._transfers.stages(source):
            into.copy_(source)
            return
        size = self._stage_bytes // source.itemsize
        for start in range(0, source.numel(), size):
            self._stage(source[start : start + size], into[start : start + size])

    @cached_property
    def _buffers(self) -> tuple[Tensor, Tensor]:
        return self._transfers.buffer(self._stage_bytes), self._transfers.buffer(self._stage_bytes)

    def _stage(self, source: Tensor, target: Tensor) -> None:
        """Let a buffer be filled, and write the other one, which was begun before."""
        buffer = self._buffers[self._num_started % 2][: source.nbytes].view(source.dtype)
        self._num_started += 1
        wait = self._transfers.start(buffer, source)
        self._finish_last()

        def write() -> None:
            wait()
            target.copy_(buffer)

        self._write_last = write

    def _finish_last(self) -> None:
        if self._write_last is not None:
            self._write_last()
        self._write_last = None
