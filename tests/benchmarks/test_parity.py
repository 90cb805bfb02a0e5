"""The benchmark of parity: rounding passes in both types, and faults stop a run.

In float32 each of its faults does. In bfloat16 those do that move tokens by more than rounding: an untrained
model's distribution is nearly flat, so there it is sharpened first, as training would do.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

STOPPED_IN_BFLOAT16 = {
    "temperature times 1.1",
    "stale vision tower, 100 steps",
    "stale last layer, 100 steps",
}


def sharpened(model: Path, folder: Path) -> Path:
    """A copy of a model with logits eight times as large."""
    shutil.copytree(model, folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] *= 8
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rounding_passes_and_faults_are_found(
    root: Path, tiny_model: Path, tmp_path: Path, dtype: str
) -> None:
    model = tiny_model if dtype == "float32" else sharpened(tiny_model, tmp_path / "sharp")
    command = [
        *(sys.executable, root / "benchmarks" / "parity.py", root / "configs" / "quickstart.yaml"),
        *(f"model.path={model}", f"model.dtype={dtype}", f"run.dir={tmp_path}"),
        *("rollout.prompts_per_step=4", "--json"),
    ]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(child.stdout)
    rounding, *faults = figures["faults"].values()
    stopped = {name for name, fault in figures["faults"].items() if fault["stops"]}
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
    wanted = STOPPED_IN_BFLOAT16 if dtype == "bfloat16" else figures["faults"].keys() - {"none"}
    assert stopped >= wanted
