"""The two sides of train_step.py, each in a process of its own: vlrl's trainer, and plain padded rows."""

from __future__ import annotations

import os
import socket
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from train_case import Case, make_groups, random_pixels, training_flops

from vlrl.config import Config, parse_config
from vlrl.loss import clipped_surrogate, weighted_sum
from vlrl.pack import branches_of, pack
from vlrl.prefix_tree import Branch, Keys

MAX_TOKENS = 8192
LEARNING_RATE = 1e-6


def serve(kind: str, case: Case, folder: str, threads: int, pipe: Connection) -> None:
    """Start a side, then take one step for each message until None comes.

    Each answer has wall and CPU seconds, the loss, and the peak memory of all steps so far, in bytes.
    """
    torch.set_num_threads(threads)
    side = {"vlrl": PackedSide, "rows": RowsSide}[kind](case, folder)
    side.step()
    reset_peak()
    pipe.send({"flops": side.flops, "num_tokens": side.num_tokens})
    while pipe.recv() is not None:
        begin, cpu = time.perf_counter(), time.process_time()
        loss = side.step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu
        pipe.send({"seconds": seconds, "cpu_seconds": cpu_seconds, "loss": loss, "peak": peak_bytes()})


def reset_peak() -> None:
    """Peaks are of what follows: neither of loading nor of the first step."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Most memory in use since the last reset: of the GPU if there is one, else of the process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


class PackedSide:
    """vlrl: prefix trees in one sequence, on a ZeRO-3 rank."""

    def __init__(self, case: Case, folder: str) -> None:
        import json

        from vlrl.trainer_rank import TrainerRank

        if not torch.cuda.is_available():
            os.environ["DS_ACCELERATOR"] = "cpu"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._rank = TrainerRank(config_of(case, folder), (7,), 0, ("127.0.0.1", port))
        self._rank.start()
        [self._batch] = pack(
            make_groups(case),
            random_pixels,
            num_ranks=1,
            max_tokens=MAX_TOKENS,
            aggregation="token",
            max_completion_tokens=case.completion_tokens,
            keep_zero_advantage=True,
        )
        self.flops = training_flops(json.loads((Path(folder) / "config.json").read_text()), self._batch)
        self.num_tokens = sum(len(m.input_ids) for m in self._batch)

    def step(self) -> float:
        """One optimizer step; its loss."""
        return self._rank.step(self._batch, "grpo", LEARNING_RATE).sums.loss


class RowsSide:
    """As the field trains: every completion a padded row with its own copy of prompt and pictures.

    transformers' own forward pass and plain AdamW; logits of the completions alone, as the best of peers.
    """

    flops = 0.0

    def __init__(self, case: Case, folder: str) -> None:
        from transformers import AutoModelForImageTextToText

        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model: Any = AutoModelForImageTextToText.from_pretrained(
            folder, dtype=getattr(torch, case.dtype), attn_implementation="sdpa"
        ).to(self._device)
        if case.checkpointing:
            options = {"use_reentrant": False}
            self._model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        self._model.train()
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0
        )
        branches = [
            branch
            for group in make_groups(case)
            for branch in branches_of(group, [1.0] * len(group.trajectories), Keys())
        ]
        branches.sort(key=lambda b: -len(b.ledger.token_ids))
        self._weight = 1.0 / sum(int(b.trained.sum()) for b in branches)
        longest = len(branches[0].ledger.token_ids)
        count = max(1, MAX_TOKENS // longest)
        self._batches = [branches[i : i + count] for i in range(0, len(branches), count)]
        self.num_tokens = sum(len(rows) * len(rows[0].ledger.token_ids) for rows in self._batches)

    def step(self) -> float:
        """One optimizer step; its loss."""
        total = 0.0
        for rows in self._batches:
            loss = self._loss(rows)
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return total

    def _loss(self, rows: list[Branch]) -> torch.Tensor:
        length = len(rows[0].ledger.token_ids)
        ids, mask = (np.zeros((len(rows), length), np.int64) for _ in range(2))
        positions = np.zeros((3, len(rows), length), np.int64)
        for row, branch in enumerate(rows):
            size = len(branch.ledger.token_ids)
            ids[row, :size], mask[row, :size] = branch.ledger.token_ids, 1
            positions[:, row, :size] = branch.ledger.position_ids
        pixels = random_pixels([medium for branch in rows for medium in branch.ledger.media])
        inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **pixels}
        output = self._model.model(**{k: torch.as_tensor(v, device=self._device) for k, v in inputs.items()})
        trained = [(row, place) for row, b in enumerate(rows) for place in np.flatnonzero(b.trained).tolist()]
        row, place = (torch.tensor(x, device=self._device) for x in zip(*trained, strict=True))
        logits = self._model.lm_head(output.last_hidden_state[row, place - 1]).float()
        logits[:, 7] = float("-inf")
        targets = torch.as_tensor(ids, device=self._device)[row, place]
        logprobs = torch.log_softmax(logits, -1).gather(1, targets[:, None])[:, 0]
        sampler, advantages = (
            torch.tensor(np.concatenate([values[b.trained] for b, values in pairs]), device=self._device)
            for pairs in (
                [(b, b.ledger.sampler_logprobs) for b in rows],
                [(b, b.advantages) for b in rows],
            )
        )
        per_token, _ = clipped_surrogate(logprobs, sampler, advantages, clip_low=0.2, clip_high=0.28)
        return weighted_sum(per_token, torch.full_like(per_token, self._weight))


def config_of(case: Case, folder: str) -> Config:
    """Of the vlrl side."""
    return parse_config(
        {
            "model": {"path": folder, "dtype": case.dtype},
            "data": {"train": {"name": "digit_sum"}},
            "trainer": {
                "max_tokens_per_micro_batch": MAX_TOKENS,
                "gradient_checkpointing": case.checkpointing,
            },
        }
    )
