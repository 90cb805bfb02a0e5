"""The engines on an NVIDIA GPU: the same laws, on CUDA vLLM and NCCL."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_config

from vlrl import grpo
from vlrl.tracking.console import TrainConsole

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-3), ("bfloat16", 0.5)])
def test_a_run_trains_with_parity_on_cuda(
    tiny_model: Path, local_ray: None, tmp_path: Path, dtype: str, tolerance: float
) -> None:
    config = make_config(
        tiny_model,
        run={"name": dtype, "dir": str(tmp_path)},
        model={"path": str(tiny_model), "dtype": dtype},
        data={"train": {"name": "digit_sum"}},
        rewards=[{"name": "think_answer_format"}],
        num_steps=3,
        parity={"tolerance": tolerance},
    )
    with TrainConsole("cuda", config.num_steps) as console:
        summary = grpo.train(config, console)
    assert "CPU" not in str(summary["device"])
    assert (config.run_dir / "model" / "model.safetensors").exists()
