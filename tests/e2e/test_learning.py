"""The quickstart's promise, on three seeds: a weak warm start, and GRPO alone lifts it to 0.90."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_quickstart_learns(seed: int, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "vlrl"), "quickstart", "--seed", str(seed), "--json"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    summary = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, summary
    assert 0.2 <= summary["heldout_accuracy_before_sampled"] <= 0.6
    assert summary["heldout_accuracy_after"] >= 0.9
    assert Path(summary["report"]).exists()
