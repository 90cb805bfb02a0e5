"""The claim of docs/distillation.md, on three seeds: a token teaches more where there is a teacher."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "distillation.py"


@pytest.mark.slow
@pytest.mark.timeout(2700)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_student_reaches_its_teacher_with_fewer_tokens_than_grpo(seed: int, tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARK), "--seeds", str(seed), "--out", str(tmp_path), "--json"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    [found] = json.loads(done.stdout.splitlines()[-1])["runs"]
    assert found["accuracy_start"] < 0.8 < 0.9 <= found["accuracy_teacher"], found
    assert found["tokens_grpo"] is not None and found["tokens_distilled"] is not None, found
    assert found["tokens_distilled"] < found["tokens_grpo"], found
