"""Synthetic groups of a case's sizes for the trainer alone, with random tokens and images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from cases import Case
from step_floor import language_flops, vision_flops
from train_shapes import IMAGE_PAD, MERGE, PATCH

from vlrl.algorithm.credit import group_with_advantages
from vlrl.batch import MicroBatch
from vlrl.processors.prompts.mrope import mrope_positions
from vlrl.rollout.session import Session
from vlrl.types import Generation, Group, Media, Prompt, Sample, Score, VersionSpan


def make_groups(case: Case, seed: int = 0) -> list[Group]:
    """Groups with random tokens. Of the screens after the first, half are one that others may see too."""
    rng = np.random.default_rng(seed)
    return [_group(case, number, rng) for number in range(case.groups)]


def _group(case: Case, number: int, rng: np.random.Generator) -> Group:
    first = _media(case, f"{number} 0")
    sample = Sample(str(number), (), first, _prompt(case, 0, rng))
    # The first member's actions and screens, which others repeat as long as they act alike.
    trunk = [(_generated(case, rng), _prompt(case, 0, rng)) for _ in range(case.turns)]
    trajectories = []
    for index in range(case.group_size):
        session, same = Session(sample, index), True
        for turn in range(case.turns):
            if turn:
                seen = 0 if same else int(rng.integers(0, 2)) * (index + 1)  # 0: one that others come to too
                text = trunk[turn][1] if same else _prompt(case, 0, rng)
                prompt = _moved(case, text, session.next_position)
                session.append_observation(prompt, _media(case, f"{number} {turn} {seen}"))
            same = same and (index == 0 or bool(rng.random() < case.alike))
            generated = trunk[turn][0] if same else _generated(case, rng)
            logprobs = np.full(len(generated), -6.2, np.float32)
            session.append_action(Generation(generated, logprobs, (VersionSpan(0, 0, len(generated)),), True))
        trajectories.append(session.trajectory("", "ok", 0.0))
        trajectories[-1].score = Score(0.0, {})
    return group_with_advantages(trajectories, rng.normal(size=case.group_size).tolist())


def _generated(case: Case, rng: np.random.Generator) -> Any:
    least = max(1, int(case.shortest * case.completion_tokens))
    return rng.integers(10, 500, int(rng.integers(least, case.completion_tokens + 1))).astype(np.int64)


def _media(case: Case, name: str) -> tuple[Media, ...]:
    side = case.tokens_per_side * MERGE
    frames = np.zeros((1, side * PATCH, side * PATCH, 3), np.uint8)
    names = [f"{name} {image}" for image in range(case.images)]
    return tuple(
        Media("image", name, frames, frames.shape[1:3], (1, side, side), case.image_tokens) for name in names
    )


def _prompt(case: Case, start: int, rng: np.random.Generator) -> Prompt:
    """Images, each followed by its share of the text, so that no two placeholders touch; or text alone."""
    if not case.images:
        return _placed(case, rng.integers(10, 500, case.text_tokens).astype(np.int64), start)
    shares = np.diff(np.linspace(0, case.text_tokens, case.images + 1).astype(int))
    pieces = [[np.full(case.image_tokens, IMAGE_PAD), rng.integers(10, 500, share)] for share in shares]
    ids = np.concatenate([part for piece in pieces for part in piece]).astype(np.int64)
    return _placed(case, ids, start)


def _moved(case: Case, prompt: Prompt, start: int) -> Prompt:
    return _placed(case, prompt.token_ids, start)


def _placed(case: Case, ids: Any, start: int) -> Prompt:
    side = case.tokens_per_side
    is_pad = ids == IMAGE_PAD
    grids = [(1, side, side)] * case.images
    positions, following = mrope_positions(is_pad, grids, [0.0] * case.images, start)
    begins = np.flatnonzero(np.diff(np.concatenate([[0], is_pad.astype(np.int8)])) == 1)
    return Prompt(ids, ids, positions, following, tuple(begins.tolist()))


def random_pixels(media: Sequence[Media]) -> dict[str, Any]:
    """Random patches, the same for the same medium, whose name is three or more numbers; or a blank image."""
    dim = 3 * 2 * PATCH**2
    if not media:
        blank = np.zeros((MERGE**2, dim), np.float32)
        return {"pixel_values": blank, "image_grid_thw": np.array([[1, MERGE, MERGE]])}
    patches = [
        np.random.default_rng([int(word) for word in m.sha256.split()]).standard_normal(
            (np.prod(m.grid_thw), dim), dtype=np.float32
        )
        for m in media
    ]
    grids = np.array([m.grid_thw for m in media], dtype=np.int64)
    return {"pixel_values": np.concatenate(patches), "image_grid_thw": grids}


def training_flops(config: Mapping[str, Any], micro_batches: Sequence[MicroBatch]) -> float:
    """Operations that a step cannot do without: one forward and two backward, each shared token once."""
    text, vision = config["text_config"], config["vision_config"]
    total = 0
    for batch in micro_batches:
        places = np.arange(len(batch.input_ids))
        gone = np.searchsorted(np.sort(batch.seen_until), places, side="right")
        pairs = int((places - gone + 1).sum())
        size = len(batch.input_ids)
        total += language_flops(text, size, pairs // size, len(batch.target_ids))
        grids = [] if batch.media_inputs is None else batch.media_inputs["image_grid_thw"].tolist()
        total += sum(vision_flops(vision, h * w, h * w // MERGE**2) for _, h, w in grids)
    return 3.0 * total
