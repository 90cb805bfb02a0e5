"""Processes that share sequences: each computes its slice of a micro-batch, as trainer ranks do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from plain_model import model_of
from rank_processes import RankProcesses, free_port

from vlrl.batch import MicroBatch
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.sequence_parallel import join_group


class Sharers(RankProcesses):
    """Some processes, as a context; call it with the slices of a micro-batch."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._port = free_port()

    def __call__(
        self, folder: Path, banned: Sequence[int], slices: Sequence[MicroBatch]
    ) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Logprobs of each slice, and what it adds to the gradient of Σ weight · advantage · logprob."""
        task = (self.count, self._port, folder, tuple(banned))
        return self.run(_gradients, [(rank, *task, part) for rank, part in enumerate(slices)])


def _gradients(
    rank: int, count: int, port: int, folder: Path, banned: Sequence[int], part: MicroBatch
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    model = model_of(folder)
    wrapped = TreeLogprobs(
        model, temperature=1.0, banned_token_ids=banned, sharers=_joined(rank, count, port)
    )
    batch = DeviceBatch.of(part, torch.device("cpu"))
    logprobs, _ = wrapped(batch)
    (batch.weights * batch.advantages * logprobs).sum().backward()
    grads = {n: p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}
    return logprobs.detach().numpy(), grads


@cache
def _joined(rank: int, count: int, port: int) -> dist.ProcessGroup | None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count)
    return join_group(count)
