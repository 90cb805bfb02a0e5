"""One ZeRO-3 rank without Ray, on synthetic groups: its memory, its time, its work. Not run by hand."""

from __future__ import annotations

import multiprocessing
import os
import resource
import socket
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cases import Case
from step_floor import read_model_config
from step_job import BenchmarkError
from train_groups import make_groups, random_pixels, training_flops
from train_shapes import IMAGE_PAD

from vlrl.batch import MicroBatch
from vlrl.config import Config
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group

LEARNING_RATE = 1e-6
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Measured:
    """What one rank took.

    Attributes:
        peak_bytes: on a CPU its largest resident memory, the mapped weight segment included; on a GPU what
            torch has reserved, without the CUDA context.
        seconds: of a step, the median.
        write_seconds: of writing all weights to shared memory, the median; None where that is too small.
        start_seconds: of loading the model and building the engine.
        num_tokens: that a step computes, what is shared once.
        num_row_tokens: the same with a row for every completion, its prompt included, as others count.
        flops: that a step cannot do without.
        choices: what the rank chose for this machine, and why.
    """

    peak_bytes: int
    seconds: float
    write_seconds: float | None
    start_seconds: float
    num_tokens: int
    num_row_tokens: int
    flops: float
    choices: list[str]


def start_rank(config: Config) -> tuple[Any, float]:
    """(the only rank, in this process and on its first device; seconds that its start took)."""
    import torch

    if not torch.cuda.is_available():
        os.environ["DS_ACCELERATOR"] = "cpu"
    from vlrl.trainer.rank import TrainerRank

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rank = TrainerRank(config, (IMAGE_PAD,), 0, ("127.0.0.1", port))
    return rank, rank.start()


def packed(groups: list[Group], case: Case, max_tokens: int) -> list[MicroBatch]:
    """A step's micro-batches for the only rank."""
    options = PackOptions(
        num_ranks=1, max_tokens=max_tokens, max_completion_tokens=case.completion_tokens, images_once=True
    )
    [batch] = pack(groups, random_pixels, options)
    return batch


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, called in a new process, whose memory is its own and is free afterwards.

    Raises:
        BenchmarkError: if it fails; its error is on stderr.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sending, function, arguments))
    process.start()
    sending.close()
    try:
        answer = receiving.recv()
    except EOFError:
        process.join()
        raise BenchmarkError(
            f"the rank's process ended with status {process.exitcode}; its error is above"
        ) from None
    process.join()
    return answer


def _answer(sending: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    sending.send(function(*arguments))


def measure(config: Config, case: Case, steps: int) -> Measured:
    """Start a rank and take steps; in a process of its own, or the peak is not the rank's."""
    import torch

    rank, start_seconds = start_rank(config)
    groups = make_groups(case)
    batch = packed(groups, case, config.trainer.max_tokens_per_micro_batch)
    seconds, write_seconds = [], []
    with ExitStack() as stack:
        manifest = _segment(rank, stack)
        for _ in range(steps + 1):  # the first one compiles and reserves
            seconds.append(_timed(rank.step, batch, "grpo", LEARNING_RATE))
            if manifest is not None:
                write_seconds.append(_timed(rank.write_weights, manifest))
    on_gpu = torch.cuda.is_available()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(
        peak_bytes=torch.cuda.max_memory_reserved() if on_gpu else resident,
        seconds=statistics.median(seconds[1:]),
        write_seconds=statistics.median(write_seconds[1:]) if write_seconds else None,
        start_seconds=start_seconds,
        num_tokens=sum(len(micro_batch.input_ids) for micro_batch in batch),
        num_row_tokens=sum(len(led.token_ids) for g in groups for t in g.trajectories for led in t.ledgers),
        flops=training_flops(read_model_config(config.model.path), batch),
        choices=[str(choice) for choice in rank.choices()],
    )


def _segment(rank: Any, stack: ExitStack) -> Any:
    """A weight segment's manifest, removed with the stack; None if shared memory is too small."""
    from vlrl.errors import ResourceError
    from vlrl.weights.manifest import create_segment, plan_segment

    path = SHARED_MEMORY / f"vlrl-benchmark-{os.getpid()}"
    manifest = plan_segment(path, rank.parameters())
    try:
        create_segment(manifest)
    except ResourceError:
        return None
    stack.callback(path.unlink)
    return manifest


def _timed(work: Any, *arguments: Any) -> float:
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin
