"""Shapes of a model are counted once for all tests of plans: what they are is tested in test_model_config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vlrl.config import Config
from vlrl.plan import shapes
from vlrl.plan.shapes import ModelShape

COUNTED: dict[str, ModelShape] = {}


def counted_once(config: Config, **options: Any) -> ModelShape:
    key = f"{config.model.model_dump_json()} {config.lora and config.lora.model_dump_json()}"
    if key not in COUNTED:
        COUNTED[key] = shapes.read_shape(config, **options)
    return COUNTED[key]


@pytest.fixture
def count_shapes_once(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModelShape]:
    """Shapes of the models in vlrl/plan/models, which never change."""
    for module in ("changes", "predict", "room"):
        monkeypatch.setattr(f"vlrl.plan.{module}.read_shape", counted_once)
    return counted_once
