"""The benchmark of parity: rounding passes in both types, and in float32 each of its faults stops a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rounding_passes_and_faults_are_found(
    root: Path, tiny_model: Path, tmp_path: Path, dtype: str
) -> None:
    command = [
        *(sys.executable, root / "benchmarks" / "parity.py", root / "configs" / "quickstart.yaml"),
        *(f"model.path={tiny_model}", f"model.dtype={dtype}", f"run.dir={tmp_path}"),
        *("rollout.prompts_per_step=4", "--json"),
    ]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(child.stdout)
    rounding, *faults = figures["faults"].values()
    assert figures["num_tokens"] > 100
    assert not rounding["stops"]
    assert rounding["mean"] <= rounding["p99.9"] <= rounding["max"]
    assert len(faults) == 9
    spread = figures["histogram"]
    assert sum(spread["shares"]) == pytest.approx(1)
    assert np.log(max(spread["largest_ratio"], 1 / spread["smallest_ratio"])) == pytest.approx(
        rounding["max"], rel=1e-4
    )
    assert spread["limited"]["truncated"] == spread["limited"]["masked"] >= spread["limited"]["decoupled"]
    assert all(fault["mean"] > rounding["mean"] for fault in faults)
    assert all(fault["stops"] for fault in faults) or dtype == "bfloat16"
