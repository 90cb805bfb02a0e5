"""Processes that share sequences: each computes its slice of a micro-batch, as trainer ranks do."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
import torch.distributed as dist

from vlrl.batch import MicroBatch
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.sequence_parallel import join_group

LIMIT_S = 120.0


class Sharers:
    """Some processes, as a context; call it with the slices of a micro-batch."""

    def __init__(self, count: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(count)]
        self._pipes = [mine for mine, _ in pairs]
        self._processes = [
            context.Process(target=_serve, args=(rank, count, port, theirs), daemon=True)
            for rank, (_, theirs) in enumerate(pairs)
        ]

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(LIMIT_S)
            process.kill()

    def __call__(
        self, folder: Path, banned: Sequence[int], slices: Sequence[MicroBatch]
    ) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Logprobs of each slice, and what it adds to the gradient of Σ weight · advantage · logprob."""
        for pipe, part in zip(self._pipes, slices, strict=True):
            pipe.send((folder, tuple(banned), part))
        answers = []
        for pipe in self._pipes:
            assert pipe.poll(LIMIT_S), "a process that shares a sequence did not answer"
            answers.append(pipe.recv())
        return answers


def _serve(rank: int, count: int, port: int, pipe: Any) -> None:
    from transformers import AutoModelForImageTextToText

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count)
    group = join_group(count)
    while (task := pipe.recv()) is not None:
        folder, banned, part = task
        model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
        wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=banned, sharers=group)
        batch = DeviceBatch.of(part, torch.device("cpu"))
        logprobs, _ = wrapped(batch)
        (batch.weights * batch.advantages * logprobs).sum().backward()
        grads = {n: p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}
        pipe.send((logprobs.detach().numpy(), grads))
    dist.destroy_process_group()
