"""One tiny model of each family, written when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tiny_families import BUILDERS


@pytest.fixture(scope="session")
def tiny_family(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A family's tiny model by its model type; read only."""
    root = tmp_path_factory.mktemp("families")

    @cache
    def build(family: str) -> Path:
        return BUILDERS[family](root / family)

    return build
