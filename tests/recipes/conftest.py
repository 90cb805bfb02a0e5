"""The recipes of configs/ with their twins' data and a tiny model."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_twins import CONFIGS, RECIPES, Recipe

from vlrl.model.tiny import build_tiny_qwen2_5_vl


@pytest.fixture(scope="session")
def recipe_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Qwen2.5-VL whose tokenizer knows the recipes' words; read only."""
    corpus = [file.read_text() for file in sorted(CONFIGS.glob("*.yaml"))]
    folder = tmp_path_factory.mktemp("recipes") / "tiny"
    return build_tiny_qwen2_5_vl(folder, corpus, num_layers=2, vision_depth=2, vocab_size=1024)


@pytest.fixture(params=RECIPES)
def recipe(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A recipe by name, with its data in the working folder as docs/recipes.md lays them out."""
    monkeypatch.chdir(tmp_path)
    found = RECIPES[request.param]
    found.write(tmp_path / "data")
    return found
