"""The codecs' benchmark runs and measures every codec."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from vlrl.envs.gui.codecs.open import CODECS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
gui_codecs = importlib.import_module("gui_codecs")


def test_it_measures_every_codec() -> None:
    found = gui_codecs.measure(rounds=1, long=2_000)
    assert set(found["codecs"]) == set(CODECS)
    for of in found["codecs"].values():
        assert of["read_us"] > 0 and of["write_us"] > 0 and of["slowest_ms"] >= 0
