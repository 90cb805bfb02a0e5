"""Copies through two buffers: nothing is read before it has come, or overwritten before it is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vlrl.weights.staging import GpuTransfers, StagedCopies


class SlowTransfers(GpuTransfers):
    """A device whose copies take until somebody waits: the buffer holds rubbish before."""

    def __init__(self) -> None:
        self.buffers: list[Tensor] = []
        self.log: list[str] = []

    def stages(self, source: Tensor) -> bool:
        return True

    def buffer(self, num_bytes: int) -> Tensor:
        self.buffers.append(torch.full((num_bytes,), 255, dtype=torch.uint8))
        return self.buffers[-1]

    def start(self, buffer: Tensor, source: Tensor) -> Callable[[], object]:
        number = len([line for line in self.log if line.startswith("start")])
        self.log.append(f"start {number}")
        buffer.view(torch.uint8).fill_(255)

        def wait() -> None:
            buffer.copy_(source)
            self.log.append(f"wait {number}")

        return wait


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_what_arrives_is_what_was_sent_whatever_its_length(dtype: torch.dtype) -> None:
    transfers = SlowTransfers()
    sources = [torch.arange(size).to(dtype) + 1 for size in (5, 16, 17, 100, 1, 0, 33)]
    targets = [torch.zeros_like(source) for source in sources]
    copies = StagedCopies(transfers, stage_bytes=128)
    for _ in range(2):  # of a second version, in the same buffers
        for target in targets:
            target.zero_()
        with copies:
            for source, target in zip(sources, targets, strict=True):
                copies.copy(source, into=target)
        for source, target in zip(sources, targets, strict=True):
            assert torch.equal(source, target)
    assert len(transfers.buffers) == 2


def test_a_copy_runs_while_the_one_before_is_written() -> None:
    transfers = SlowTransfers()
    with StagedCopies(transfers, stage_bytes=32) as copies:
        copies.copy(torch.arange(32.0), into=torch.empty(32))
    assert transfers.log == [
        "start 0", "start 1", "wait 0", "start 2", "wait 1", "start 3", "wait 2", "wait 3"
    ]  # fmt: skip


def test_after_an_error_nothing_is_written_later() -> None:
    transfers, target = SlowTransfers(), torch.zeros(8)
    copies = StagedCopies(transfers, stage_bytes=32)
    with pytest.raises(KeyError), copies:
        copies.copy(torch.ones(8), into=target)
        raise KeyError
    with copies:
        pass
    assert not target.any()


def test_host_memory_is_copied_at_once_and_pins_nothing() -> None:
    target = torch.zeros(3)
    with StagedCopies() as copies:
        copies.copy(torch.ones(3), into=target)
        assert target.all()
    assert "_buffers" not in vars(copies)
