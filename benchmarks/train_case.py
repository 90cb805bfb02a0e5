"""The cases of train_step.py: model shapes, and synthetic groups of the sizes that each one names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from step_floor import language_flops, vision_flops
from trainer_step import IMAGE_PAD, MERGE, PATCH, TEXT, VISION, build_model, random_pixels

from vlrl.batch import MicroBatch
from vlrl.credit import graded
from vlrl.processors.mrope import mrope_positions, text_positions
from vlrl.session import Session
from vlrl.types import Generation, Group, Media, Prompt, Sample, Score, VersionSpan

TEXT["11m"] = dict(hidden_size=384, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=6,
                   num_key_value_heads=3, vocab_size=512)  # fmt: skip
VISION["11m"] = VISION["tiny"]


@dataclass(frozen=True)
class Case:
    """Sizes of one step.

    Attributes:
        shape: of the model.
        groups: prompts.
        group_size: episodes of each, n.
        turns: of an episode, each with one picture.
        image_tokens: of a picture, a square number.
        text_tokens: of a turn besides.
        completion_tokens: drawn in a turn, at most; lengths are even between half of it and all.
        dtype: of the model.
        checkpointing: whether activations are computed again.
    """

    shape: str
    groups: int
    group_size: int
    turns: int
    image_tokens: int
    text_tokens: int
    completion_tokens: int
    dtype: str = "float32"
    checkpointing: bool = False


CASES = {
    "a": Case("tiny", 16, 8, 1, 9, 24, 16),
    "b": Case("11m", 4, 8, 1, 256, 44, 48),
    "c": Case("11m", 1, 8, 6, 64, 16, 24),
    "d": Case("3b", 8, 8, 1, 1024, 128, 512, "bfloat16", checkpointing=True),
}


def write_model(case: Case, folder: Path) -> None:
    """Random weights of the case's shape."""
    import torch

    build_model(case.shape, folder, getattr(torch, case.dtype))


def make_groups(case: Case, seed: int = 0) -> list[Group]:
    """Groups with random tokens. Of the screens after the first, half are one that others may see too."""
    rng = np.random.default_rng(seed)
    return [_group(case, number, rng) for number in range(case.groups)]


def _group(case: Case, number: int, rng: np.random.Generator) -> Group:
    first = _medium(case, f"{number} 0")
    sample = Sample(str(number), (), (first,), _prompt(case, first, 0, rng))
    trajectories = []
    for index in range(case.group_size):
        session = Session(sample, index)
        for turn in range(case.turns):
            if turn:
                seen = rng.integers(0, 2) * (index + 1)  # 0: the screen that others come to as well
                screen = _medium(case, f"{number} {turn} {seen}")
                session.append_observation(_prompt(case, screen, session.next_position, rng), (screen,))
            length = int(rng.integers(case.completion_tokens // 2, case.completion_tokens + 1))
            drawn = rng.integers(10, 500, length).astype(np.int64)
            logprobs = np.full(length, -6.2, np.float32)
            session.append_action(Generation(drawn, logprobs, (VersionSpan(0, 0, length),), True))
        trajectories.append(session.trajectory("", "ok", 0.0))
        trajectories[-1].score = Score(0.0, {})
    return graded(trajectories, rng.normal(size=case.group_size).tolist())


def _medium(case: Case, name: str) -> Media:
    side = round(case.image_tokens**0.5) * MERGE
    frames = np.zeros((1, side * PATCH, side * PATCH, 3), np.uint8)
    # random_pixels draws a medium's patches from the first word of its name, a number.
    key = str(abs(hash(tuple(map(int, name.split())))))
    return Media("image", f"{key} {name}", frames, frames.shape[1:3], (1, side, side), case.image_tokens)


def _prompt(case: Case, medium: Media, start: int, rng: np.random.Generator) -> Prompt:
    text = rng.integers(10, 500, case.text_tokens)
    ids = np.concatenate([np.full(case.image_tokens, IMAGE_PAD), text]).astype(np.int64)
    side = round(case.image_tokens**0.5)
    positions, following = mrope_positions(ids == IMAGE_PAD, [(1, side, side)], [0.0], start)
    assert following == start + side + case.text_tokens == text_positions(1, following)[0, 0]
    return Prompt(ids, ids, positions, following, (0,))


def training_flops(config: Mapping[str, Any], micro_batches: list[MicroBatch]) -> float:
    """Operations that a step cannot do without: one forward and two backward, each shared token once."""
    text, vision = config["text_config"], config["vision_config"]
    total = 0
    for batch in micro_batches:
        places = np.arange(len(batch.input_ids))
        gone = np.searchsorted(np.sort(batch.seen_until), places, side="right")
        pairs = int((places - gone + 1).sum())
        size = len(batch.input_ids)
        total += language_flops(text, size, pairs // size, len(batch.target_ids))
        for _, height, width in batch.media_inputs["image_grid_thw"].tolist():
            total += vision_flops(vision, height * width, height * width // MERGE**2)
    return 3.0 * total


__all__ = ["CASES", "Case", "make_groups", "random_pixels", "training_flops", "write_model"]
