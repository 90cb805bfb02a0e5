"""What painters keep: bounded by bytes, however large the screen is and however many texts are seen."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from vlrl.envs.gui.emu.drawing import icons, rasters
from vlrl.envs.gui.emu.drawing.glyphs import SIZES, Font
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS


def line(number: int) -> None:
    """Paint a line as wide as a screen of 3840 pixels, or nearly."""
    rasters.coverage(Font(size=max(SIZES)), f"{number:05}" + "w" * 110)


def icon(number: int) -> None:
    icons.emblem(96 + number // len(ICONS), 96, sorted(ICONS)[number % len(ICONS)], (0, 0, 0))


def caches_emptied() -> None:
    rasters.coverage.cache_clear()
    icons._parts.cache_clear()


@pytest.mark.parametrize(
    ("paint", "count", "most"),
    [(line, 1_500, rasters.COVERAGE_BYTES), (icon, 1_300, icons.CACHED_BYTES)],
)
def test_what_is_kept_is_bounded_by_bytes(paint: Callable[[int], None], count: int, most: int) -> None:
    caches_emptied()
    paint(0)  # what is loaded once
    tracemalloc.start()
    for number in range(count):
        paint(number)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most / 2 < grown < most * 1.1
    caches_emptied()


def test_a_line_that_is_seen_again_is_not_painted_again() -> None:
    font = Font()
    assert rasters.coverage(font, "once") is rasters.coverage(font, "once")
