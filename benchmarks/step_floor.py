"""The least a GRPO step can take: the floating-point operations it cannot do without, over the matmul rate.

Counted once per group where a group shares it (images, prompt). An estimate from below: no softmax, norm,
optimizer, sampling, nor the lower rate of the small matmuls of decoding.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORWARD_PASSES = {"generate": 1, "train": 3}
"""Passes over every token: one to generate it; to train on it one forward, and two in the backward pass."""


@dataclass(frozen=True)
class Work:
    """A step's sizes. Tokens are counted per prompt or completion, patches and image tokens per image."""

    prompts: int
    group_size: int
    prompt_tokens: int
    completion_tokens: int
    images_per_prompt: int
    patches: int
    image_tokens: int

    @property
    def tree_tokens(self) -> int:
        """Tokens of all groups, each prompt once."""
        return self.prompts * (self.prompt_tokens + self.group_size * self.completion_tokens)


def language_flops(text: Mapping[str, int], tokens: int, context: int, predictions: int) -> int:
    """Forward operations of the decoder for `tokens` that attend to `context` others, with its head."""
    hidden, layers = text["hidden_size"], text["num_hidden_layers"]
    keys = hidden * text["num_key_value_heads"] // text["num_attention_heads"]
    per_layer = 2 * (2 * hidden * hidden + 2 * hidden * keys + 3 * hidden * text["intermediate_size"])
    attention = 4 * hidden * context  # scores, then the weighted sum
    return tokens * layers * (per_layer + attention) + predictions * 2 * hidden * text["vocab_size"]


def vision_flops(vision: Mapping[str, Any], patches: int, image_tokens: int) -> int:
    """Forward operations of Qwen2.5-VL's vision tower and its merger for one image."""
    hidden, depth, num_full = vision["hidden_size"], vision["depth"], len(vision["fullatt_block_indexes"])
    window = (vision["window_size"] // vision["patch_size"]) ** 2
    keys = num_full * patches + (depth - num_full) * min(window, patches)  # of all blocks together
    values = vision["in_channels"] * vision["temporal_patch_size"] * vision["patch_size"] ** 2
    linear = 2 * (4 * hidden * hidden + 3 * hidden * vision["intermediate_size"])
    merged = hidden * vision["spatial_merge_size"] ** 2
    merger = 2 * (merged * merged + merged * vision["out_hidden_size"])
    attention = 4 * hidden * keys
    return patches * (2 * values * hidden + depth * linear + attention) + image_tokens * merger


def forward_flops(config: Mapping[str, Any], work: Work) -> int:
    """One forward pass over all groups of a step, each prompt and image once."""
    text, vision = config["text_config"], config["vision_config"]
    completions = work.prompts * work.group_size
    body = completions * (work.completion_tokens - 1)  # nothing follows the last token
    generated = language_flops(
        text, body, work.prompt_tokens + work.completion_tokens // 2, completions * work.completion_tokens
    )
    prompts = language_flops(text, work.prompts * work.prompt_tokens, work.prompt_tokens // 2, 0)
    images = work.prompts * work.images_per_prompt
    return generated + prompts + images * vision_flops(vision, work.patches, work.image_tokens)


def floor(config: Mapping[str, Any], work: Work, flops_per_second: float) -> dict[str, float]:
    """Seconds and operations by phase, and in all."""
    forward = forward_flops(config, work)
    gigaflops = {f"{phase}_gflop": passes * forward / 1e9 for phase, passes in FORWARD_PASSES.items()}
    total = sum(FORWARD_PASSES.values()) * forward
    return {
        **gigaflops,
        "gflop": total / 1e9,
        "matmul_gflop_per_s": flops_per_second / 1e9,
        "seconds": total / flops_per_second,
    }


def read_model_config(model: str | Path) -> dict[str, Any]:
    """config.json of a model folder."""
    config: dict[str, Any] = json.loads((Path(model) / "config.json").read_text())
    return config


def gpu_matmul_rate(size: int = 8192, repeats: int = 20) -> float:
    """Operations per second of a large bfloat16 matmul; the floor's fraction is the MFU against it."""
    import torch

    left, right = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    torch.matmul(left, right)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()  # type: ignore[no-untyped-call]
    for _ in range(repeats):
        torch.matmul(left, right)
    end.record()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    milliseconds = begin.elapsed_time(end)  # type: ignore[no-untyped-call]
    return 2 * size**3 * repeats / (milliseconds / 1e3)


def matmul_rate(
    rows: int,
    width: int,
    columns: int,
    repeats: int = 50,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Best operations per second, by a clock, seen in a float32 matmul [rows, width] × [width, columns]."""
    import torch

    left, right = torch.randn(rows, width), torch.randn(width, columns)
    seconds = []
    for _ in range(repeats):
        begin = clock()
        torch.matmul(left, right)
        seconds.append(clock() - begin)
    return 2 * rows * width * columns / min(seconds)
