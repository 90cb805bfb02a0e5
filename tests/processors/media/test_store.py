"""The store: decoded once, shared while alive, kept on disk by content, and none the worse for a bad disk."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from builders import random_image
from PIL import Image
from videos import numbers, write_video

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media import store as media_store
from vlrl.processors.media.disk_cache import DiskCache
from vlrl.processors.media.image import decode_image
from vlrl.processors.media.store import MediaStore
from vlrl.processors.media.video import VideoRequest

WHERE = "sample 'x'"
SIZE = (56, 84)
GIB = 1 << 30


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def open_store(cache: Path, **options: Any) -> MediaStore:
    return MediaStore(MediaConfig(**{"cache_dir": cache, "cache_gib": 1, **options}))


def photo(folder: Path, seed: int = 0, name: str | None = None) -> Path:
    """An image that has not changed for an hour."""
    path = folder / (name or f"{seed}.png")
    Image.fromarray(random_image(70, 90, seed)).save(path)
    settle(path)
    return path


def settle(path: Path, ago_s: float = 3600.0) -> None:
    os.utime(path, (time.time() - ago_s,) * 2)


def entries(cache: Path) -> list[Path]:
    """Files of pixels, not the small ones that remember hashes."""
    return [path for path in cache.glob("*/*") if path.stat().st_size > 8192]


def size_of(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.glob("*/*"))


def test_rows_with_the_same_image_share_one_array(tmp_path: Path, cache: Path) -> None:
    store = open_store(cache)
    path = photo(tmp_path)
    again = photo(tmp_path, name="copy.png")
    first = store.image(path, SIZE, WHERE)
    assert store.image(path, SIZE, "sample 'y'") is first
    assert store.image(again, SIZE, WHERE) is first  # by content, not by name
    assert store.image(path.read_bytes(), SIZE, WHERE) is first
    assert store.image(Image.open(path), SIZE, WHERE) is first
    assert store.image(path, (56, 56), WHERE) is not first
    assert len(entries(cache)) == 2


def test_sharing_ends_with_the_last_who_holds_it(tmp_path: Path) -> None:
    """What nobody uses takes no memory."""
    store = open_store(tmp_path, cache_gib=0)
    pixels = np.zeros((512, 512, 3), np.uint8)
    before = psutil.Process().memory_info().rss
    for seed in range(60):
        pixels[0, 0] = seed
        store.image(pixels, (512, 512), WHERE)
    gc.collect()
    assert psutil.Process().memory_info().rss - before < 20 * pixels.nbytes


def test_a_second_start_decodes_nothing_and_reads_no_source(tmp_path: Path, cache: Path) -> None:
    path = photo(tmp_path)
    pixels = np.array(open_store(cache).image(path, SIZE, WHERE).pixels)
    assert changed_behind_its_back(path)
    frames = open_store(cache).image(path, SIZE, WHERE)
    assert (frames.pixels == pixels).all()
    assert frames.original_size == (70, 90)
    assert not frames.pixels.flags.writeable


def test_a_changed_file_is_another_image(tmp_path: Path, cache: Path) -> None:
    store = open_store(cache)
    path = photo(tmp_path)
    first = store.image(path, SIZE, WHERE)
    Image.fromarray(random_image(70, 90, seed=9)).save(path)
    settle(path, 1800)
    assert store.image(path, SIZE, WHERE).sha256 != first.sha256


def test_a_file_that_was_just_written_is_not_believed_to_stay(tmp_path: Path, cache: Path) -> None:
    """Two writes within one tick of the clock leave the same time and size."""
    store = open_store(cache)
    path = tmp_path / "a.bmp"
    Image.fromarray(random_image(70, 90, 1)).save(path)
    status = path.stat()
    first = store.image(path, SIZE, WHERE)
    with open(path, "r+b") as file:
        file.seek(200)
        file.write(bytes(300))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert store.image(path, SIZE, WHERE).sha256 != first.sha256


def test_a_video_comes_from_the_cache_with_its_timing(tmp_path: Path, cache: Path) -> None:
    path = write_video(tmp_path / "a.mp4")
    settle(path)
    request = VideoRequest(4.0, None, 2, 8)
    first = open_store(cache).video(path, request, SIZE, WHERE)
    assert changed_behind_its_back(path)
    store = open_store(cache)
    info = store.video_info(path, request, WHERE)
    second = store.video(path, request, SIZE, WHERE)
    assert (second.pixels == first.pixels).all()
    assert numbers(second.pixels) == list(info.indices)
    assert (second.sha256, second.timestamps_s, second.fps) == (first.sha256, first.timestamps_s, first.fps)
    with pytest.raises(DataError):  # other frames must be decoded, and the file is gone
        store.video(path, VideoRequest(2.0, None, 2, 8), SIZE, WHERE)


@pytest.mark.parametrize("place", [0, 9, 13, 40, 5000, -1])
def test_a_corrupted_entry_is_made_again(tmp_path: Path, cache: Path, place: int) -> None:
    path = photo(tmp_path)
    pixels = np.array(open_store(cache).image(path, SIZE, WHERE).pixels)
    (entry,) = entries(cache)
    good = entry.read_bytes()
    for broken in (flipped(good, place), good[: len(good) // 2], b"", good + b"x"):
        entry.write_bytes(broken)
        assert (open_store(cache).image(path, SIZE, WHERE).pixels == pixels).all()
        assert entry.read_bytes() == good


def flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 4
    return bytes(changed)


def test_the_least_recently_used_go_when_the_limit_is_reached(tmp_path: Path, cache: Path) -> None:
    entry_bytes = 4096 + 112 * 112 * 3
    limit = 10 * (entry_bytes + 4096)
    store = open_store(cache, cache_gib=limit / GIB)
    paths = [photo(tmp_path, seed) for seed in range(25)]
    for path in paths:
        store.image(path, (112, 112), WHERE)
        store.image(paths[0], (112, 112), WHERE)  # used all the time, so it stays
        assert size_of(cache) <= limit
        time.sleep(0.002)  # a file system's clock ticks every few milliseconds
    assert len(entries(cache)) >= 7
    assert changed_behind_its_back(paths[0])
    later = open_store(cache, cache_gib=limit / GIB)
    assert later.image(paths[0], (112, 112), WHERE).pixels.shape == (1, 112, 112, 3)


def changed_behind_its_back(path: Path) -> bool:
    """Replace a file's content so that only its time and size stay: reading it would fail."""
    status = path.stat()
    path.write_bytes(b"?" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return path.stat().st_mtime_ns == status.st_mtime_ns


def test_what_is_dropped_stays_readable_to_its_holder(tmp_path: Path, cache: Path) -> None:
    store = open_store(cache)
    frames = store.image(photo(tmp_path), SIZE, WHERE)
    pixels = np.array(frames.pixels)
    for entry in cache.glob("*/*"):
        entry.unlink()
    assert (frames.pixels == pixels).all()


def test_records_hold_no_files_open(tmp_path: Path, cache: Path) -> None:
    """A batch holds thousands of media, and a process may open a thousand files."""
    store = open_store(cache)
    path = photo(tmp_path)
    held = [store.image(path, (28, 28 + i), WHERE) for i in range(5)]
    before = psutil.Process().num_fds()
    held += [store.image(path, (56, 28 + i), WHERE) for i in range(40)]
    assert len({frames.sha256 for frames in held}) == 45
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize("gib", [0.0, 1e-9])
def test_without_room_nothing_is_kept_and_all_works(tmp_path: Path, cache: Path, gib: float) -> None:
    store = open_store(cache, cache_gib=gib)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.image(photo(tmp_path), SIZE, WHERE).pixels.shape == (1, *SIZE, 3)
    assert not list(cache.glob("*/*"))


def test_a_folder_that_cannot_be_written_costs_one_warning(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    store = open_store(cache)
    with pytest.warns(RuntimeWarning, match="no longer cached in .*cache: .*set media.cache_dir") as caught:
        for seed in range(3):
            assert store.image(photo(tmp_path, seed), SIZE, WHERE).pixels.shape == (1, *SIZE, 3)
    assert len(caught) == 1


FULL_DISK = """
import resource, sys, warnings
from vlrl.config.data import MediaConfig
from vlrl.processors.media.store import MediaStore
store = MediaStore(MediaConfig(cache_dir=sys.argv[1], cache_gib=1))
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))  # a write beyond this fails, as on a full disk
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    shapes = [store.image(path, (112, 112), "x").pixels.shape for path in sys.argv[2:]]
print(len(shapes), set(shapes), len(caught))
"""


def test_a_write_that_stops_half_way_leaves_nothing_behind(tmp_path: Path, cache: Path) -> None:
    paths = [str(photo(tmp_path, seed)) for seed in range(3)]
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(cache), *paths], capture_output=True, text=True, timeout=120
    )
    assert child.stdout.split(maxsplit=1)[0] == "3", child.stderr
    assert child.stdout.strip().endswith("1")
    assert not entries(cache)
    assert not list(cache.glob("*/tmp-*"))


SHARE = """
import sys
import numpy as np
from vlrl.config.data import MediaConfig
from vlrl.processors.media.store import MediaStore
cache, limit, seed, *paths = sys.argv[1:]
store = MediaStore(MediaConfig(cache_dir=cache, cache_gib=int(limit) / (1 << 30)))
plain = MediaStore(MediaConfig(cache_gib=0))
for index in np.random.default_rng(int(seed)).permutation(len(paths) * 6) % len(paths):
    frames, expected = (s.image(paths[index], (112, 112), "x") for s in (store, plain))
    assert (frames.pixels == expected.pixels).all() and frames.sha256 == expected.sha256
"""


@pytest.mark.slow
def test_several_processes_share_a_folder_that_is_too_small(tmp_path: Path, cache: Path) -> None:
    """They write, read and drop the same entries at the same time."""
    paths = [str(photo(tmp_path, seed)) for seed in range(12)]
    limit = 5 * 48_000
    command = [sys.executable, "-c", SHARE, str(cache), str(limit)]
    children = [
        subprocess.Popen([*command, str(seed), *paths], stderr=subprocess.PIPE, text=True)
        for seed in range(3)
    ]
    errors = [child.communicate(timeout=120)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], errors
    assert not any("Warning" in error for error in errors), errors
    assert size_of(cache) <= limit * (1 + 3 / 16)
    assert not list(cache.glob("*/tmp-*"))


def test_threads_that_ask_at_once_cause_one_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path, cache_gib=0)
    path = photo(tmp_path)
    decoded: list[str] = []

    def counted(source: Any, name: str, limit: int) -> Any:
        decoded.append(name)
        time.sleep(0.05)  # time for the others to come
        return decode_image(source, name, limit)

    monkeypatch.setattr(media_store, "decode_image", counted)
    with ThreadPoolExecutor(8) as pool:
        frames = list(pool.map(lambda _: store.image(path, SIZE, WHERE), range(8)))
    assert all(found is frames[0] for found in frames)
    assert len(decoded) == 1


def test_leftovers_of_writers_that_died_are_removed(cache: Path) -> None:
    (cache / "aa").mkdir(parents=True)
    old, new = cache / "aa" / "tmp-1-old", cache / "aa" / "tmp-1-new"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    settle(old, 7200)
    DiskCache(cache, 1 << 20).put("bb", {}, np.zeros(9, np.uint8))
    assert not old.exists()
    assert new.exists()


def test_the_cache_is_in_the_user_s_own_folder_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    MediaStore(MediaConfig()).image(photo(tmp_path), SIZE, WHERE)
    assert entries(tmp_path / "caches" / "vlrl" / "media")
