"""The benchmark of where environments run: it runs, and its environment answers everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_isolation_is_measured(root: Path) -> None:
    short = ["--num-steps", "10", "--rounds", "1", "--at-once", "2"]
    command = [sys.executable, "benchmarks/env_hosts.py", *short, "--json"]
    found = json.loads(subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=200).stdout)
    rows = {name: row for name, row in found.items() if isinstance(row, dict)}
    assert len(rows) == 15
    assert all(seconds > 0 for row in rows.values() for seconds in row.values())
