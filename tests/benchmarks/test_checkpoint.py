"""The benchmark of a save writes real checkpoints."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from vlrl.run.checkpoint import latest_checkpoint
from vlrl.run.manifest import damage

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
checkpoint = importlib.import_module("checkpoint")


def test_it_measures_whole_and_verified_checkpoints(tmp_path: Path) -> None:
    found = checkpoint.measure(tmp_path, gib=1 / 16, rounds=2)
    assert found["save_s"] > 0 and found["digests_s"] > 0
    told: list[str] = []
    folder, state = latest_checkpoint(tmp_path, lambda event, text: told.append(text))
    assert (state.next_step, damage(folder), told) == (1, "", [])
    assert sum(file.stat().st_size for file in folder.rglob("*.bin")) == 2**26
