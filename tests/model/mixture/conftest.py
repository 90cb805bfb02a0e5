from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked_episodes import Family

from vlrl.model.mixture.routers import ROUTERS


@pytest.fixture(scope="module", params=["qwen3_vl_moe", "qwen3_5_moe", "glm4v_moe", "internvl3_5_moe"])
def family(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> Family:
    return Family.open(request.param, tiny_family(request.param))


@pytest.fixture(autouse=True)
def without_hooks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Models are shared; what a test hooks to their routers ends with it."""
    yield
    if "family" in request.fixturenames:
        for module in request.getfixturevalue("family").model.modules():
            if type(module).__name__ in ROUTERS:
                module._forward_hooks.clear()
