"""A run whose base is rounded to 4 bits: engines are sent it before the first token."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from builders import make_config
from rich.console import Console

from vlrl import grpo
from vlrl.tracking.console import TrainConsole


@pytest.mark.slow
def test_engine_and_trainer_have_the_same_base_from_the_start(
    tiny_model: Path, local_ray: None, tmp_path: Path
) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed: make dev")
    (tmp_path / "reward.py").write_text(
        "def last(completion, answer):\n    return float(len(completion) % 2)\n"
    )
    config = make_config(
        tiny_model,
        run={"name": "run", "dir": str(tmp_path)},
        lora={"rank": 2, "base": "nf4"},
        data={"train": {"name": "digit_sum", "limit": 8}},
        rewards=[{"name": f"{tmp_path}/reward.py:last"}],
        rollout={"prompts_per_step": 2, "group_size": 2, "max_tokens": 4},
        num_steps=1,
        logging={"tensorboard": False},
    )
    shown = io.StringIO()
    with TrainConsole("test", 1, console=Console(file=shown, width=300)) as console:
        grpo.train(config, console)
    [said] = re.findall(r"trainer and engine agree to (\S+) nats", shown.getvalue())
    assert float(said) < 1e-4
