"""One tiny model of each family, written when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_families import BUILDERS


@pytest.fixture(scope="session")
def tiny_family(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A family's tiny model by its model type, with weights large enough to matter; read only."""
    root = tmp_path_factory.mktemp("families")

    @cache
    def build(family: str) -> Path:
        folder = BUILDERS[family](root / family)
        weights, generator = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(0)
        noisy = {k: w + 0.05 * torch.randn(w.shape, generator=generator) for k, w in weights.items()}
        save_file(noisy, folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return build
