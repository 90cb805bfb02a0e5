"""What the sides of train_step.py that only train have in common: steps on the driver's word."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

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


def serve(make: Callable[[Job], TrainSide], job: Job) -> None:
    """Start the side, then run the blocks that the driver asks for."""
    begin = time.perf_counter()
    pipe = Pipe()
    import torch

    torch.set_num_threads(job.threads)
    side = make(job)
    on_gpu = torch.cuda.is_available()
    pipe.send(start_up={"total": time.perf_counter() - begin})
    while steps := pipe.next_block():
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
        pipe.send(block=block.as_dict(losses=losses, **counted))
