"""Stage 3: the trainer against transformers' own forward pass of padded rows: logprobs and gradients.

A tiny model, and two layers at Qwen2.5-VL-3B's widths and vocabulary; groups with images and of text alone.
The reference is transformers in float32. In float32 the trainer must agree with it to TOLERANCE; in bfloat16
it may be off by ALLOWED times what transformers' own bfloat16 is. The trainer is asked twice: its module
(prefix trees, the attention of this device, chunked logits) for every parameter's gradient, and a ZeRO-3
rank for logprobs and the gradient's norm.
"""

from __future__ import annotations

import gc
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import stage
import torch
from cases import Case
from one_rank import in_own_process, packed, start_rank
from rows_step import pixels_of, rows_logprobs
from train_groups import make_groups
from train_shapes import IMAGE_PAD, build_model

from vlrl.batch import MicroBatch
from vlrl.config import Config, parse_config
from vlrl.model.attention import Kind
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.pack import branches_of
from vlrl.packing.prefix_tree import Branch, Keys

TOLERANCE = 1e-3
"""In float32: of a logprob in nats, and of gradients relative to their norm."""
ALLOWED = 2.0
MAX_TOKENS = 8192
SIZES = {"groups": 2, "group_size": 8, "image_tokens": 64, "text_tokens": 64, "completion_tokens": 48}
TINY_SIZES = {"groups": 1, "group_size": 2, "image_tokens": 4, "text_tokens": 8, "completion_tokens": 6}

Gradients = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Answer:
    """Logprobs by trajectory, one after the other in a fixed order, and the gradient of their mean."""

    logprobs: np.ndarray[Any, Any]
    gradients: Gradients

    def errors(self, reference: Answer) -> dict[str, float]:
        """Mean and largest difference of logprobs in nats, and the gradient's error by its norm."""
        difference = np.abs(self.logprobs - reference.logprobs)
        squares = [
            ((self.gradients[name] - exact).square().sum(), exact.square().sum())
            for name, exact in reference.gradients.items()
        ]
        error, norm = (float(torch.stack(terms).sum().sqrt()) for terms in zip(*squares, strict=True))
        return {"mean": float(difference.mean()), "max": float(difference.max()), "gradient": error / norm}


@dataclass(frozen=True)
class Work:
    """The same tokens for both sides.

    Attributes:
        rows: transformers' rows, one a trajectory.
        batch: the trainer's micro-batches.
        order: where each trajectory's trained tokens are among those of all micro-batches.
    """

    rows: list[Branch]
    batch: list[MicroBatch]
    order: np.ndarray[Any, Any]

    @classmethod
    def of(cls, case: Case) -> Work:
        groups = make_groups(case)
        rows = [b for group in groups for b in branches_of(group, [1.0] * case.group_size, Keys())]
        batch = packed(groups, case, MAX_TOKENS)
        # Advantages are random numbers, so a trajectory is known by its own.
        advantages = np.concatenate([micro_batch.advantages for micro_batch in batch])
        own = [np.float32(credit.advantages[0][-1]) for group in groups for credit in group.credits]
        order = np.concatenate([np.flatnonzero(advantages == value) for value in own])
        assert len(set(order)) == len(advantages), "two trajectories have one advantage"
        return cls(rows, batch, order)


def measure(options: stage.Options) -> stage.Verdict:
    stage.require_gpus(1, options)
    stage.require_packages("deepspeed")
    figures: dict[str, Any] = {}
    for shape in ("tiny",) if options.tiny else ("tiny", "wide"):
        cases = {
            f"{shape}, {name}": Case(shape, turns=1, images=images, **(TINY_SIZES if options.tiny else SIZES))
            for name, images in (("text", 0), ("images", 1))
        }
        with tempfile.TemporaryDirectory() as folder:
            build_model(shape, Path(folder), torch.float32)
            works = {name: Work.of(case) for name, case in cases.items()}
            figures |= compare(Path(folder), works, torch.device(options.device))
    faults = [f"{name}: {fault}" for name, found in figures.items() for fault in faults_of(found)]
    worst = max(found["float32"]["module"]["max"] for found in figures.values())
    rounding = max(found["bfloat16"]["module"]["mean"] for found in figures.values())
    words = f"logprobs agree to {worst:.1e} nats in float32, to {rounding:.1e} on average in bfloat16"
    return stage.Verdict.of(words, faults, figures)


def compare(folder: Path, works: dict[str, Work], device: torch.device) -> dict[str, dict[str, Any]]:
    """Errors of one model, by work, type and side."""
    exact = {name: of_rows(load(folder, "float32", device), work) for name, work in works.items()}
    found: dict[str, dict[str, Any]] = {name: {"num_tokens": len(w.order)} for name, w in works.items()}
    for dtype in ("float32", "bfloat16"):
        ranks = in_own_process(ask_rank, folder, dtype, [work.batch for work in works.values()])
        for (name, work), (logprobs, norm) in zip(works.items(), ranks, strict=True):
            found[name][dtype] = {
                "transformers": of_rows(load(folder, dtype, device), work).errors(exact[name]),
                "module": of_module(load(folder, dtype, device), work).errors(exact[name]),
                "rank": rank_errors(logprobs[work.order], norm, exact[name]),
            }
    return found


def load(folder: Path, dtype: str, device: torch.device) -> Any:
    """The model by transformers."""
    from transformers import AutoModelForImageTextToText

    gc.collect()
    torch.cuda.empty_cache()
    options = {"dtype": getattr(torch, dtype), "attn_implementation": "sdpa"}
    return AutoModelForImageTextToText.from_pretrained(folder, **options).to(device).train()


def of_rows(model: Any, work: Work) -> Answer:
    """Transformers' own: a padded row for each trajectory."""
    return answer(rows_logprobs(model, work.rows, pixels_of(work.rows)), model)


def of_module(model: Any, work: Work) -> Answer:
    """The trainer's module on packed trees, with the attention that a rank is to have on this device."""
    kind: Kind = "flex" if model.device.type == "cuda" else "blocks"
    wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=(IMAGE_PAD,), attention=kind)
    kept = StepFeatures()
    found = torch.cat([wrapped(DeviceBatch.of(m, model.device), kept)[0] for m in work.batch])
    return answer(found[torch.as_tensor(work.order, device=model.device)], model)


def answer(logprobs: torch.Tensor, model: Any) -> Answer:
    """Differentiate the mean, and put all into float32 on the host."""
    logprobs.mean().backward()  # type: ignore[no-untyped-call]
    gradients = {n: p.grad.float().cpu() for n, p in model.named_parameters() if p.grad is not None}
    return Answer(logprobs.detach().float().cpu().numpy(), gradients)


def ask_rank(
    folder: Path, dtype: str, batches: list[list[MicroBatch]]
) -> list[tuple[np.ndarray[Any, Any], float]]:
    """A ZeRO-3 rank's (logprobs, norm of the gradient of their mean) on each batch."""
    rank, _ = start_rank(config_of(folder, dtype))
    return [(np.concatenate(rank.logprobs(b)), rank.step(b, "sft", 0.0).grad_norm) for b in batches]


def rank_errors(logprobs: np.ndarray[Any, Any], norm: float, reference: Answer) -> dict[str, float]:
    """Errors named as in `Answer.errors`; of the gradient only the norm is known."""
    difference = np.abs(logprobs - reference.logprobs)
    squares = [gradient.square().sum() for gradient in reference.gradients.values()]
    exact = float(torch.stack(squares).sum().sqrt())
    error = abs(norm - exact) / exact
    return {"mean": float(difference.mean()), "max": float(difference.max()), "gradient": error}


def config_of(folder: Path, dtype: str) -> Config:
    return parse_config(
        {
            "run": {"dir": str(folder)},
            "model": {"path": str(folder), "dtype": dtype},
            "data": {"train": {"name": "digit_sum"}},
        }
    )


def faults_of(found: dict[str, Any]) -> list[str]:
    """What is wrong with one case's errors."""
    faults = []
    for side in ("module", "rank"):
        for name in ("max", "gradient"):
            error = found["float32"][side][name]
            if not error <= TOLERANCE:  # nan too
                faults.append(f"{side}, float32: {name} is off by {error:.1e}, more than {TOLERANCE:g}")
        for name in ("mean", "gradient"):
            error, plain = (found["bfloat16"][who][name] for who in (side, "transformers"))
            if not error <= ALLOWED * plain:
                faults.append(f"{side}, bfloat16: {name} is off by {error:.1e}, transformers by {plain:.1e}")
    return faults


if __name__ == "__main__":
    stage.run(measure)
