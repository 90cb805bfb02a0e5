"""Jobs of train_step.py and step_sweep.py: model and rows on disk, and the floor of that work."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases import Case
from step_floor import Work, floor, matmul_rate, read_model_config
from step_job import Job

PATCHES_PER_TOKEN = 4
Clock = Callable[[], float]


def whole_job(
    case: Case, folder: Path, *, max_steps: int, threads: int, seed: int, micro_batch: int | None
) -> Job:
    """Write the model, with tokenizer and processor, and the rows that both sides of a whole step read."""
    import numpy as np
    from train_shapes import TEXT
    from transformers.utils import logging

    from vlrl.envs.visual.questions.digit_sum import INSTRUCTION, DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    logging.disable_progress_bar()
    rows = DigitSum(num_rows=max_steps * case.groups, num_digits=case.images, image_size=case.image_pixels)
    contents = [rows[i]["messages"][0]["content"] for i in range(len(rows))]
    images = [[part["image"] for part in content if part["type"] == "image"] for content in contents]
    np.savez(folder / "rows.npz", images=np.asarray(images))
    corpus = [INSTRUCTION, *(str(rows[i]["target"]) for i in range(min(256, len(rows))))]
    text = TEXT[case.shape]
    model = build_tiny_qwen2_5_vl(
        folder / "model",
        corpus,
        seed=seed,
        hidden_size=text["hidden_size"],
        num_layers=text["num_hidden_layers"],
        num_heads=text["num_attention_heads"],
    )
    sizes: dict[str, Any] = {"max_steps": max_steps, "threads": threads, "seed": seed}
    data: dict[str, Any] = {"rows": str(folder / "rows.npz"), "text": INSTRUCTION, "num_rows": len(rows)}
    return _job(case, folder, model, micro_batch, **data, **sizes)


def trainer_job(
    case: Case, folder: Path, *, max_steps: int, threads: int, seed: int, micro_batch: int | None
) -> Job:
    """Write random weights of the case's shape for the sides that only train."""
    import torch
    from train_shapes import build_model

    build_model(case.shape, folder / "model", getattr(torch, case.dtype))
    sizes: dict[str, Any] = {"max_steps": max_steps, "threads": threads, "seed": seed}
    return _job(case, folder, folder / "model", micro_batch, rows="", text="", num_rows=0, **sizes)


def _job(case: Case, folder: Path, model: Path, micro_batch: int | None, **sizes: Any) -> Job:
    job = Job(
        folder=str(folder),
        model=str(model),
        case=case,
        lr=2e-4,
        betas=(0.9, 0.95),
        max_grad_norm=1.0,
        micro_batch=micro_batch or case.completions,
        **sizes,
    )
    job.write()
    return job


def whole_floor(job: Job, prompt_tokens: int, clock: Clock = time.perf_counter) -> dict[str, float]:
    """The floor of a whole step of prompts of so many tokens."""
    case, config = job.case, read_model_config(job.model)
    work = Work(
        prompts=case.groups,
        group_size=case.group_size,
        prompt_tokens=prompt_tokens,
        completion_tokens=case.completion_tokens,
        images_per_prompt=case.images,
        patches=PATCHES_PER_TOKEN * case.image_tokens,
        image_tokens=case.image_tokens,
    )
    return floor(config, work, cpu_rate(config, work.tree_tokens, job.threads, clock))


def cpu_rate(
    config: dict[str, Any], num_tokens: int, threads: int, clock: Clock = time.perf_counter
) -> float:
    """Operations per second, by a clock, of a matmul as large as a step's widest, with the sides' threads."""
    import torch

    from vlrl.model.cpu_matmul import choose_products

    torch.set_num_threads(threads)
    choose_products()  # as vlrl's side does; the floor is for the better of torch's libraries
    text = config["text_config"]
    return matmul_rate(min(num_tokens, 4096), text["hidden_size"], text["intermediate_size"], clock=clock)
