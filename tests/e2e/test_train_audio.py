"""A run on sounds: Qwen2.5-Omni learns on two ranks to tell low tones from high ones, by SFT and by GRPO."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_config, random_image
from PIL import Image
from rich.console import Console
from sounds import tone, write_sound
from tiny_families import build_qwen2_5_omni

from vlrl import grpo, sft
from vlrl.config import Config
from vlrl.tracking.console import TrainConsole

NUM_STEPS = 2
REWARD = """
def same(completion, answer):
    return float(completion.strip() == answer)
"""
TONES = {"low": 300.0, "high": 2500.0}


def write_rows(folder: Path, name: str, count: int, seed: int) -> Path:
    """Rows that ask which tone is heard: alone, beside an image, and every fifth one of text alone."""
    generator, lines = np.random.default_rng(seed), []
    for index in range(count):
        answer = ("low", "high")[index % 2]
        file = f"{name}-{index}.wav"
        write_sound(
            folder / file, tone(generator.uniform(0.3, 0.9), TONES[answer] * generator.uniform(0.9, 1.1))
        )
        content: list[dict[str, Any]] = [{"type": "audio", "audio": file}, {"type": "text", "text": "Which?"}]
        if index % 4 == 0:
            image = f"{name}-{index}.png"
            Image.fromarray(random_image(60, 60, seed=index)).save(folder / image)
            content.insert(0, {"type": "image", "image": image})
        if index % 5 == 4:
            content = [{"type": "text", "text": f"Say {answer}."}]
        lines.append({"messages": [{"role": "user", "content": content}], "answer": answer, "target": answer})
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("audio")
    (folder / "reward.py").write_text(REWARD)
    return make_config(
        build_qwen2_5_omni(folder / "model"),
        run={"name": "sft", "dir": str(folder), "seed": 3},
        processor={"min_pixels": 32 * 32, "max_pixels": 64 * 64},
        media={"cache_dir": str(folder / "cache")},
        data={
            "train": [{"name": str(write_rows(folder, "train", 80, 0))}],
            "eval": [{"name": str(write_rows(folder, "eval", 20, 1))}],
        },
        rewards=[{"name": f"{folder}/reward.py:same"}],
        num_steps=200,
        sft={"batch_size": 16, "until_loss": 0.02},
        rollout={"prompts_per_step": 6, "group_size": 4, "max_tokens": 8},
        optim={"lr": 3e-3},
        trainer={"num_ranks": 2, "cpus_per_rank": 0.5, "timeout_s": 120},
        eval={"num_samples": 20},
        checkpoint={"every": 0},
        logging={"tensorboard": False, "rollouts": {"every": 1}},
    )


@pytest.mark.slow
def test_a_model_learns_from_what_it_hears(config: Config, local_ray: None) -> None:
    """Held-out tones of other pitches and lengths; engines agree at every step, and sounds are kept."""
    with TrainConsole("test", config.num_steps, console=Console(file=io.StringIO())) as console:
        sft.train(config, console)
    tree = config.model_dump(mode="json")
    tree |= {"run": {**tree["run"], "name": "grpo"}, "num_steps": NUM_STEPS}
    tree |= {"model": {**tree["model"], "path": str(config.run_dir / "model")}}
    trained = Config.model_validate({**tree, "optim": {**tree["optim"], "lr": 1e-4}})
    with TrainConsole("test", NUM_STEPS, console=Console(file=io.StringIO())) as console:
        summary = grpo.train(trained, console)
    found = [json.loads(line) for line in (trained.run_dir / "metrics.jsonl").read_text().splitlines()]
    assert all(m["parity/max_abs_logprob_diff"] < 1e-4 for m in found)
    assert summary["heldout_accuracy_before_greedy"] >= 0.9
    assert list((trained.run_dir / "media").glob("*.wav"))
