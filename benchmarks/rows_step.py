"""Plain padded rows as a side of train_step.py: what vlrl's trainer is measured against. Not run by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cases import Case
from packed_step import config_of
from step_job import Job
from train_groups import make_groups, random_pixels
from train_shapes import IMAGE_PAD
from train_side import LEARNING_RATE, MAX_TOKENS, Prepare, TrainSide, serve

from vlrl.algorithm.loss import clipped_surrogate, weighted_sum
from vlrl.packing.pack import branches_of
from vlrl.packing.prefix_tree import Branch, Keys


class RowsSide:
    """Trains as the field does: every completion a padded row with its own copy of prompt and images.

    transformers' own forward pass and plain AdamW; logits of the completions alone, as the best of peers.
    """

    def __init__(self, job: Job) -> None:
        from transformers import AutoModelForImageTextToText

        case = job.case
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model: Any = AutoModelForImageTextToText.from_pretrained(
            job.model, dtype=getattr(torch, case.dtype), attn_implementation="sdpa"
        ).to(self._device)
        if case.checkpointing:
            options = {"use_reentrant": False}
            self._model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        self._model.train()
        self._max_grad_norm = job.max_grad_norm
        self._algorithm = config_of(case, Path(job.model)).algorithm
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=LEARNING_RATE, betas=job.betas, weight_decay=0.0
        )

    def prepare(self, case: Case) -> TrainSide:
        """The rows of a step."""
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
        self._pixels = [pixels_of(rows) for rows in self._batches]
        num_tokens = sum(len(rows) * len(rows[0].ledger.token_ids) for rows in self._batches)
        return TrainSide(step=self.step, num_tokens=num_tokens)

    def step(self) -> float:
        """One optimizer step; its loss."""
        total = 0.0
        for rows, pixels in zip(self._batches, self._pixels, strict=True):
            loss = self._loss(rows, pixels)
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._max_grad_norm)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return total

    def _loss(self, rows: list[Branch], pixels: dict[str, Any]) -> torch.Tensor:
        logprobs = rows_logprobs(self._model, rows, pixels)
        sampler, advantages = (
            torch.tensor(np.concatenate([values[b.trained] for b, values in pairs]), device=self._device)
            for pairs in (
                [(b, b.ledger.sampler_logprobs) for b in rows],
                [(b, b.advantages) for b in rows],
            )
        )
        bounds = {name: getattr(self._algorithm, name) for name in ("clip_low", "clip_high", "dual_clip")}
        per_token, _ = clipped_surrogate(logprobs, sampler, advantages, **bounds)
        return weighted_sum(per_token, torch.full_like(per_token, self._weight))


def rows_logprobs(
    model: Any,
    rows: Sequence[Branch],
    pixels: Mapping[str, Any],
    banned_token_ids: Sequence[int] = (IMAGE_PAD,),
) -> torch.Tensor:
    """Logprobs [M] of the rows' trained tokens, row by row, by transformers' own forward pass.

    Args:
        model: of transformers.
        rows: padded to the longest.
        pixels: of all their images; none if they have no images.
        banned_token_ids: impossible, as they are for vlrl's side.
    """
    device, length = model.device, max(len(branch.ledger.token_ids) for branch in rows)
    ids, mask = (np.zeros((len(rows), length), np.int64) for _ in range(2))
    positions = np.zeros((3, len(rows), length), np.int64)
    for row, branch in enumerate(rows):
        size = len(branch.ledger.token_ids)
        ids[row, :size], mask[row, :size] = branch.ledger.token_ids, 1
        positions[:, row, :size] = branch.ledger.position_ids
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **pixels}
    output = model.model(**{k: torch.as_tensor(v, device=device) for k, v in inputs.items()})
    trained = [(row, place) for row, b in enumerate(rows) for place in np.flatnonzero(b.trained).tolist()]
    row, place = (torch.tensor(x, device=device) for x in zip(*trained, strict=True))
    logits = model.lm_head(output.last_hidden_state[row, place - 1]).float()
    logits[:, list(banned_token_ids)] = float("-inf")
    targets = torch.as_tensor(ids, device=device)[row, place]
    return torch.log_softmax(logits, -1).gather(1, targets[:, None])[:, 0]


def pixels_of(rows: Sequence[Branch]) -> dict[str, Any]:
    """The patches of all rows' images, row by row."""
    media = [medium for branch in rows for medium in branch.ledger.media]
    return random_pixels(media) if media else {}


def start(job: Job) -> Prepare:
    """The model; then its rows."""
    return RowsSide(job).prepare


if __name__ == "__main__":
    serve(start, Job.read(sys.argv[1]))
