"""The benchmark of MiniWoB runs, small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_it_prints_its_figures(root: Path) -> None:
    command = [
        sys.executable,
        root / "benchmarks" / "miniwob.py",
        "--tasks",
        "2",
        "--seconds",
        "0.2",
        "--rounds",
        "1",
        "--json",
    ]
    figures = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=200).stdout)
    assert figures["determinism"] == {"same": 2, "of": 2, "different": []}
    assert set(figures["steps_per_s"]) == {"1", "4", "8"}
    assert figures["reset_ms"] > 0
    costs = figures["processor_ms"]
    assert {"python", "browser", "renderer", "gpu-process"} <= set(costs["step"]) & set(costs["reset"])
    assert list(costs["step_parts"]) == ["logic", "drawing", "encoding", "hashing", "transport"]
    assert abs(sum(costs["step"].values()) - costs["step_all"]) < 0.1
    assert figures["memory_mib"]["one"] > 0
