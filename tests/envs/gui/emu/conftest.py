"""The gallery, for the tests of the emulated desktop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gallery import Bench, known


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    """Makes a desktop with the gallery at a page."""
    known(monkeypatch)

    def make(page: str = "first", **options: object) -> Bench:
        return Bench(page, **options)

    return make
