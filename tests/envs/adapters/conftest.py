from __future__ import annotations

from collections.abc import Iterator

import pytest
from ecosystem import ROOT, server


@pytest.fixture(scope="session")
def lights() -> Iterator[str]:
    """Address of the OpenEnv server among the examples."""
    with server(ROOT / "examples" / "environments" / "openenv_lights.py") as url:
        yield url
