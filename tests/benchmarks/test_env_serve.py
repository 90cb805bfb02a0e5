"""The benchmark of environments over HTTP: it runs, and names its floors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_both_images_are_measured(root: Path) -> None:
    command = [sys.executable, "benchmarks/env_serve.py", "--num-steps", "3", "--json"]
    found = json.loads(subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=200).stdout)
    for image in ("desktop", "noise"):
        row = found[image]
        assert {"local_ms", "bare_request_ms", "raw_ms", "png_ms", "raw_overhead_ms"} <= row.keys()
        assert 0 <= row["local_ms"] < row["raw_ms"]
