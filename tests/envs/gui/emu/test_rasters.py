"""What painters keep: bounded by bytes, however large the screen is and however many texts are seen."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vlrl.envs.gui.emu.drawing import icons, rasters
from vlrl.envs.gui.emu.drawing.glyphs import SIZES, Font
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.drawing.kept import ENTRY_BYTES, Kept, own_bytes
from vlrl.envs.gui.emu.drawing.theme import Colour
from vlrl.envs.gui.emu.drawing.wallpaper import wallpaper


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


def test_what_was_wanted_last_stays_and_the_others_go() -> None:
    kept = Kept(20 * (3_000 + ENTRY_BYTES))
    first = rasters.plate(40, 25, (0, 0, 0), (9, 9, 9), (5, 5, 5), 3)
    assert own_bytes(first) == 3_000
    kept.put((0,), first)
    for number in range(1, 60):
        kept.put((number,), first.copy())
        assert kept.get((0,)) is first and kept.num_bytes <= kept.most_bytes
    assert [number for number in range(60) if kept.get((number,)) is not None] == [0, *range(41, 60)]


def test_what_repeats_itself_counts_as_what_it_repeats() -> None:
    behind = wallpaper(3840, 2160, "slope", (0, 0, 0), (255, 255, 255))
    assert own_bytes(behind) == 3 * (3840 + 2160) and behind.nbytes == 3 * 3840 * 2160
    assert own_bytes(rasters.fill(3840, 2160, (1, 2, 3))) == 3 * 3840


@example((3, 1), None, 0, "left", 4)  # narrower than its inset
@given(
    st.tuples(st.integers(1, 90), st.integers(1, 30)),
    st.sampled_from([None, (9, 90, 200)]),
    st.integers(0, 9),
    st.sampled_from(["left", "center", "right"]),
    st.integers(0, 5),
)
def test_letters_that_are_looked_up_are_those_that_are_mixed(
    size: tuple[int, int], border: Colour | None, radius: int, align: str, inset: int
) -> None:
    values = ((7, 7, 7), (240, 1, 100), border, radius)
    found = rasters.plate(*size, *values, "Äpfel", Font(), (3, 200, 10), align, inset)
    mixed = rasters.plate(*size, *values).copy()
    rasters.write(mixed, "Äpfel", Font(), (3, 200, 10), align, inset)
    assert np.array_equal(found, mixed)
