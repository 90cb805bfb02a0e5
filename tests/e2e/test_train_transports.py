"""Whole runs over every transport, into one engine or several: both sides agree after every update."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from builders import make_config
from rich.console import Console

from vlrl import grpo
from vlrl.tracking.console import TrainConsole

NUM_STEPS = 2
RUNS = [
    ("disk", "batch", 2),
    ("broadcast", "continuous", 2),
    ("shared_memory", "continuous", 1),
    ("shared_memory", "batch", 1),
]
PARALLEL = {("shared_memory", "batch"): 2}
"""Processes of an engine, else one; in a placement group vLLM would make Ray actors of them."""


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "mode", "num_replicas"), RUNS)
def test_a_run_keeps_parity(
    tiny_model: Path, local_ray: None, tmp_path: Path, transport: str, mode: str, num_replicas: int
) -> None:
    config = make_config(
        tiny_model,
        run={"name": "run", "dir": str(tmp_path)},
        data={
            "train": {"name": "digit_sum"},
            "eval": {"name": "digit_sum", "options": {"split": "heldout"}},
        },
        num_steps=NUM_STEPS,
        algorithm={"kl_coef": 0.01},  # something is learnt even where all rewards are equal
        optim={"lr": 3e-3},
        generator={
            "mode": mode,
            "num_replicas": num_replicas,
            "tensor_parallel_size": PARALLEL.get((transport, mode), 1),
            "cpus": 0.5,
        },
        weights={
            "transport": transport,
            "bucket_mib": 0.5,
            "probe_every": 1,
            "checksums": True,
        },
        eval={"num_samples": 2},
        logging={"tensorboard": False},
    )
    with TrainConsole("test", NUM_STEPS, console=Console(file=io.StringIO())) as console:
        summary = grpo.train(config, console)
    lines = [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(NUM_STEPS))
    assert all(line["parity/max_abs_logprob_diff"] < 1e-4 for line in lines)
    assert all(line["failures/replaced_engines"] == 0 for line in lines)
    assert summary["num_steps"] == NUM_STEPS
    assert (config.run_dir / "model" / "model.safetensors").exists()
    weights = config.run_dir / "weights"
    assert not weights.exists() or not list(weights.iterdir())
