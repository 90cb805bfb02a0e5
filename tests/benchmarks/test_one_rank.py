"""benchmarks/one_rank.py takes steps: what the trainer's benchmarks, here and on a GPU, are made of."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # programs, not a package: they import one another by plain name
one_rank = importlib.import_module("one_rank")
packed_step = importlib.import_module("packed_step")
step_job = importlib.import_module("step_job")
cases = importlib.import_module("cases")
train_shapes = importlib.import_module("train_shapes")


def test_a_rank_steps_on_random_pixels_of_a_model_that_has_no_processor(tmp_path: Path) -> None:
    case = cases.Case("tiny", 1, 2, 1, 1, 4, 8, 4)
    train_shapes.build_model(case.shape, tmp_path, torch.float32)
    found = one_rank.in_own_process(one_rank.measure, packed_step.config_of(case, tmp_path), case, 1)
    assert found.seconds > 0 and found.peak_bytes > 0 and found.flops > 0
    assert 8 < found.num_tokens < found.num_row_tokens
