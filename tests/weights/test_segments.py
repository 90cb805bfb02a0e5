"""Weights that a killed process left in shared memory are told from those of a living one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from builders import make_config

from vlrl.weights.places import WeightPlaces
from vlrl.weights.segments import hold, new_path, orphans

HOLDER = """
import sys, time
from pathlib import Path
from vlrl.weights.segments import hold, new_path
path = new_path(Path(sys.argv[1]))
path.touch()
hold(path)
print(path, flush=True)
time.sleep(60)
"""
LAYOUT = [("a", "float32", (4, 4))]


def killed_holder(folder: Path) -> Path:
    """The file of a process that is gone, which had to give its lock back by dying."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    path = Path(process.stdout.readline().strip())
    assert path not in orphans(folder)  # in shared memory there may be those of other runs
    process.kill()
    process.wait()
    process.stdout.close()
    return path


def test_a_killed_process_leaves_an_orphan(tmp_path: Path) -> None:
    assert orphans(tmp_path) == []
    assert orphans(tmp_path) == [] != [killed_holder(tmp_path)] == orphans(tmp_path)


def test_a_file_of_a_living_process_is_none_locked_or_not(tmp_path: Path) -> None:
    new_path(tmp_path).touch()
    assert orphans(tmp_path) == []


def test_a_locked_file_is_none_though_its_process_cannot_be_seen(tmp_path: Path) -> None:
    """Another container's, which shares the memory and not the process numbers."""
    path = tmp_path / "vlrl-weights-4194305-0a1b2c3d"  # above the largest process number
    path.touch()
    descriptor = hold(path)
    assert orphans(tmp_path) == []
    os.close(descriptor)
    assert orphans(tmp_path) == [path]


def test_the_next_run_clears_away_what_a_killed_one_left_in_shared_memory(tmp_path: Path) -> None:
    left = killed_holder(Path("/dev/shm"))
    assert left.exists()
    places = WeightPlaces(make_config(run={"dir": str(tmp_path)}), LAYOUT, "unused")
    assert not left.exists()
    own = Path(places.current.path)
    assert own.exists() and own not in orphans(Path("/dev/shm"))
    places.close()
    assert not own.exists()


def test_and_on_disk_so_that_its_versions_are_not_in_the_way(tmp_path: Path) -> None:
    """A version that a killed run had written could not be written again: its folder was not empty."""
    folder = tmp_path / "weights"
    for name in ("00000000", "00000001.part"):
        (folder / name).mkdir(parents=True)
        (folder / name / "00000.safetensors").touch()
    (folder / "mine").touch()
    places = WeightPlaces(make_config(weights={"transport": "disk", "folder": str(folder)}), LAYOUT, "unused")
    for _ in range(3):
        place = places.next()
        Path(place.path).mkdir()
        (Path(place.path) / "00000.safetensors").touch()
        places.written(place, [])
    places.close()
    assert os.listdir(folder) == ["mine"]
