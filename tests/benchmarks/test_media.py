"""The media benchmark itself: its images are realistic, and its sides make the same patches."""

from __future__ import annotations

import importlib
import io
import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
media = importlib.import_module("media")


def test_photos_are_large_noisy_and_always_the_same() -> None:
    for index in range(2):
        image = media.photo(index)
        assert 1e6 < image.width * image.height < 2.2e6
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=90)
        assert 2e5 < buffer.tell() < 1.5e6
        assert (np.asarray(image) == np.asarray(media.photo(index))).all()


def test_all_sides_run_and_agree(tmp_path: Path) -> None:
    images = media.Images(tmp_path, num_images=1, group_size=2)
    report = media.measure(images, rounds=1)
    assert set(report["seconds"]) == set(media.SIDES)
    assert len(images.plain()) == 2
    assert len(images.warm()) == 1
    videos = media.Videos(tmp_path, seconds=2, group_size=1)
    media.compare(videos)
    videos.size = (56, 56)
    with pytest.raises(SystemExit, match="different patches"):
        media.compare(videos)


def test_the_summary_divides_the_right_way_round() -> None:
    class Few:
        paths = (1, 2)
        group_size = 4

    medians = {"plain": 8.0, "cold": 2.0, "warm": 0.1, "warm_patches": 1.0, "floor": 0.5}
    report = media.summary(medians, Few())
    assert report["times_quicker"] == {"cold": 4.0, "warm": 80.0, "warm_patches": 8.0, "floor": 16.0}
    assert report["uses_per_s"] == {"plain": 1.0, "cold": 4.0, "warm": 80.0, "warm_patches": 8.0}
    assert report["cold_over_floor"] == 4.0


def test_memory_is_told_in_mib() -> None:
    with mmap.mmap(-1, 64 << 20) as held:  # of its own: the heap may have freed memory to give
        before = media.memory_mib("VmRSS")
        for at in range(0, 64 << 20, 4096):
            held[at] = 1
        assert 50 < media.memory_mib("VmRSS") - before < 80
