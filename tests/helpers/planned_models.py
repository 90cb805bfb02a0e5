"""Shapes for tests of plans, without a model behind them."""

from __future__ import annotations

from typing import Any

from vlrl.config import Config
from vlrl.plan.shapes import ModelShape, Stack


def stack(num_layers: int, hidden: int, inner: int, layer: int) -> Stack:
    return Stack(num_layers, hidden, hidden, hidden // 4, inner, 3, layer)


# Qwen2.5-VL-7B's widths.
SEVEN = ModelShape(
    params={"vision_tower": 630_000_000, "projector": 45_000_000, "embeddings": 545_000_000,
            "language_layers": 6_527_000_000, "head": 545_000_000},
    trained={"vision_tower": 630_000_000, "projector": 45_000_000, "embeddings": 545_000_000,
             "language_layers": 6_527_000_000, "head": 545_000_000},
    adapters=0, adapted_outputs={},
    language=stack(28, 3584, 18944, 233_000_000), vision=stack(32, 1280, 3420, 20_000_000),
    vocab=152064, patch=14, patches_per_token=4, weight_bytes=2, num_matrix_weights=7_200_000_000,
)  # fmt: skip


def with_trainer(config: Config, **values: Any) -> Config:
    return config.model_copy(update={"trainer": config.trainer.model_copy(update=values)})
