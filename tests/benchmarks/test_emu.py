"""The benchmark of the emulated desktop runs, small, and its replays are identical."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_it_prints_its_figures(root: Path) -> None:
    command = [sys.executable, root / "benchmarks" / "emu.py", "--episodes", "1", "--rounds", "1", "--json"]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(child.stdout)
    for size in ("640x480", "1280x800"):
        assert figures[size]["replays_identical"]
        assert figures[size]["steps_per_second"] > 0 and figures[size]["snapshot_restore_us"] > 0
