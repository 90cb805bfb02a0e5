"""What the sides of train_step.py that only train have in common: sizes and steps on the driver's word."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cases import Case
from step_job import Block, Job, Pipe

MAX_TOKENS = 8192
"""Of a micro-batch, on both sides."""
LEARNING_RATE = 1e-6


@dataclass(frozen=True)
class TrainSide:
    """One side, ready.

    Attributes:
        step: takes one optimizer step; its loss.
        num_tokens: slots that a step computes, padding included.
        flops: that a step cannot do without; 0 where it is not known.
    """

    step: Callable[[], float]
    num_tokens: int
    flops: float = 0.0


Prepare = Callable[[Case], TrainSide]
"""A started side, which makes itself ready for a step of some sizes."""


def serve(start: Callable[[Job], Prepare], job: Job) -> None:
    """Start the side, then run the blocks that the driver asks for."""
    begin = time.perf_counter()
    pipe = Pipe()
    import torch

    torch.set_num_threads(job.threads)
    prepare = start(job)
    side = prepare(job.case)
    pipe.send(start_up={"total": time.perf_counter() - begin})
    while command := pipe.next_command():
        if isinstance(command, Case):
            del side  # two sizes at once would be too much memory
            side = prepare(command)
            pipe.send(prepared={"num_tokens": side.num_tokens, "flops": side.flops})
        else:
            pipe.send(block=run_block(side, command))


def run_block(side: TrainSide, steps: int) -> dict[str, Any]:
    """Take steps; what they measured."""
    import torch

    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    block, losses = Block(steps), []
    for _ in range(steps):
        losses.append(side.step())
        if on_gpu:
            torch.cuda.synchronize()
        block.end_step({}, rest="train")
    gpu_bytes = torch.cuda.max_memory_allocated() if on_gpu else 0
    counted = {"num_tokens": side.num_tokens, "flops": side.flops, "gpu_bytes": gpu_bytes}
    return block.as_dict(losses=losses, **counted)
