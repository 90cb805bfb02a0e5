"""The gallery, for the tests of the emulated desktop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gallery import Bench, known

from vlrl.envs.gui.emu.drawing.paint import Compositor


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    """Makes a desktop with the gallery at a page."""
    known(monkeypatch)

    def make(page: str = "first", **options: object) -> Bench:
        return Bench(page, **options)

    return make


@pytest.fixture
def without_paint(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has desktops lay out their screens and not paint them from now on: for what looks at no pixels."""
    return lambda: monkeypatch.setattr(Compositor, "show", lambda self, layers: self.pixels)
