"""One Ray for all tests of the engines: starting it costs seconds, and an engine far more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from builders import make_config

from vlrl.cluster import cluster


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Room for every actor the tests start; `vlrl.cluster` joins it instead of starting its own."""
    with cluster(make_config(trainer={"num_ranks": 6})):
        yield
