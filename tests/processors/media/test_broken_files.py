"""Broken files, over 200: each gives an image, a video or a clear error, in bounded time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broken_files import IMAGES, write_broken, write_good

OPEN_ALL = '''
import json, resource, sys, warnings
from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.store import MediaStore
from vlrl.processors.media.video import VideoRequest

warnings.simplefilter("ignore")
store = MediaStore(
    MediaConfig(cache_gib=0, max_source_pixels=1_000_000, max_video_s=60, timeout_s=10, max_file_mib=1)
)
request = VideoRequest(4.0, None, 2, 16)
store.image(sys.argv[1], (56, 84), "x")  # what opening a good image loads


def peak():
    """In KiB; getrusage would tell the peak of whoever started this process."""
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])


def outcome(use):
    try:
        frames = use()
        return f"{frames.kind} {frames.pixels.shape[1:]} {frames.pixels.flags.writeable}"
    except DataError as error:
        return f"DataError {error}"
    except BaseException as error:
        return f"{type(error).__name__} {error}"


before = peak()
found = {}
for path in sys.argv[1:]:
    found[path] = [
        outcome(lambda: (store.image_size(path, "sample 'x'"), store.image(path, (56, 84), "sample 'x'"))[1]),
        outcome(lambda: store.video(path, request, (56, 84), "sample 'x'")),
    ]
grown = peak() - before
del store
print(json.dumps([found, grown, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
'''


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path], list[Any]]:
    """(good files, broken files, what a process of its own made of them and of how much memory)."""
    folder = tmp_path_factory.mktemp("corpus")
    good = write_good(folder / "good")
    broken = write_broken(folder / "broken", good)
    first = next(path for path in good if path.suffix == ".png")
    command = [sys.executable, "-c", OPEN_ALL, str(first), *map(str, [*good, *broken])]
    child = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert child.returncode == 0, child.stderr[-3000:]
    return good, broken, json.loads(child.stdout)


def test_good_files_are_good(opened: Any) -> None:
    good, _, (found, _, _) = opened
    for path in good:
        as_image, as_video = found[str(path)]
        image, video = path.suffix in IMAGES, path.suffix not in IMAGES or path.stem == "moving"
        assert as_image == "image (56, 84, 3) False" or not image, as_image
        assert as_video == "video (56, 84, 3) False" or not video, as_video


def test_every_broken_file_is_a_medium_or_a_clear_error(opened: Any) -> None:
    _, broken, (found, _, _) = opened
    assert len(broken) >= 200
    outcomes = [outcome for path in broken for outcome in found[str(path)]]
    for outcome in outcomes:
        assert outcome.startswith(
            ("image (56, 84, 3) False", "video (56, 84, 3) False", "DataError sample 'x': ")
        ), outcome
    print("N", len(broken))
    refused = [path for path in broken if all(o.startswith("DataError") for o in found[str(path)])]
    print("R", len(refused))
    assert len(refused) > len(broken) / 2  # so the corpus is broken indeed


def test_lies_about_the_size_are_found(opened: Any) -> None:
    _, broken, (found, _, _) = opened
    lies = [path for path in broken if path.name.startswith("lie-")]
    assert len(lies) >= 12
    accepted = {path.name: found[str(path)][0] for path in lies if found[str(path)][0].startswith("image")}
    assert accepted == {}


def test_memory_stays_bounded(opened: Any) -> None:
    """An image at the limit of a million pixels takes 3 MB, a decoder some frames of that (in KiB)."""
    _, _, (_, grown, workers) = opened
    print("MEM", grown / 1024, workers / 1024)
    assert 0 < grown < 100 * 1024
    assert workers < 600 * 1024
