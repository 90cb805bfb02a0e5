"""A run of GRPO on what people have: text, images and videos in files of several shapes, on two ranks.

A Qwen3-VL, whose videos are written out with their times, at rates other than two frames a second.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_config, random_image
from PIL import Image
from rich.console import Console
from tiny_families import build_qwen3_vl
from videos import write_video

from vlrl import grpo, sft
from vlrl.config import Config
from vlrl.tracking.console import TrainConsole

NUM_STEPS = 3

REWARD = '''
def vowels(completion, answer):
    """Something a random model gets more or less of."""
    return sum(c in "aeiou0123456789" for c in completion) / 10


def length(completion, answer):
    return len(completion) / 10
'''


def write_rows(folder: Path) -> None:
    """Six rows in vlrl's own shape, four as LLaVA writes them, with their media beside them."""
    for index in range(4):
        Image.fromarray(random_image(50 + 20 * index, 90, seed=index)).save(folder / f"{index}.png")
    write_video(folder / "clip.mp4", num_frames=12, rate=6, size=(64, 96))

    def said(*parts: Any) -> list[dict[str, Any]]:
        kinds = {"png": "image", "mp4": "video"}
        content = [
            {"type": "text", "text": p}
            if not isinstance(p, dict) and p[-3:] not in kinds
            else (p if isinstance(p, dict) else {"type": kinds[p[-3:]], kinds[p[-3:]]: p})
            for p in parts
        ]
        return [{"role": "user", "content": content}]

    own = [
        said("Only words."),
        said("0.png", "One image."),
        said("Two:", "1.png", "and", "2.png", "Which is larger?"),
        said({"type": "video", "video": "clip.mp4", "fps": 3}, "What happens?"),
        said("Between", {"type": "video", "video": "clip.mp4", "start_s": 0.5, "fps": 1.5}, "and", "3.png"),
        said({"type": "video", "video": "clip.mp4", "num_frames": 6}, "Count."),
    ]
    lines = [json.dumps({"messages": m, "answer": "7", "target": "<answer>7</answer>"}) for m in own]
    (folder / "own.jsonl").write_text("\n".join(lines))
    llava = [
        {
            "id": f"llava-{i}",
            "image": f"{i}.png",
            "conversations": [
                {"from": "human", "value": "<image>\nWhat is it?"},
                {"from": "gpt", "value": "an image"},
                {"from": "human", "value": "And then?"},
                {"from": "gpt", "value": "<answer>7</answer>"},
            ],
        }
        for i in range(4)
    ]
    (folder / "llava.json").write_text(json.dumps(llava))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("media")
    write_rows(folder)
    (folder / "reward.py").write_text(REWARD)
    return make_config(
        build_qwen3_vl(folder / "model"),
        run={"name": "media", "dir": str(folder), "seed": 3},
        processor={
            "min_pixels": 32 * 32,
            "max_pixels": 128 * 128,
            "video": {"min_pixels": 32 * 32, "max_pixels": 64 * 64},
        },
        media={"cache_dir": str(folder / "cache")},
        data={
            "train": [
                {"name": str(folder / "own.jsonl"), "weight": 2.0},
                {
                    "name": str(folder / "llava.json"),
                    "rewards": [{"name": f"{folder}/reward.py:length"}],
                },
            ],
            "eval": [{"name": str(folder / "own.jsonl")}],
        },
        rewards=[{"name": f"{folder}/reward.py:vowels"}],
        num_steps=NUM_STEPS,
        rollout={"prompts_per_step": 6, "group_size": 4, "max_tokens": 8},
        optim={"lr": 1e-3},
        trainer={"num_ranks": 2, "cpus_per_rank": 0.5, "timeout_s": 120},
        eval={"num_samples": 6},
        checkpoint={"every": 0},
        logging={"tensorboard": False},
    )


def metrics(config: Config) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_engines_agree_on_every_kind_of_medium_at_every_step(config: Config, local_ray: None) -> None:
    """The run itself compares the prompts' ids (law 3) and every generated token's logprob (law 5)."""
    with TrainConsole("test", NUM_STEPS, console=Console(file=io.StringIO())) as console:
        summary = grpo.train(config, console)
    found = metrics(config)
    assert [m["step"] for m in found] == list(range(NUM_STEPS))
    assert all(m["parity/max_abs_logprob_diff"] < 1e-4 for m in found)
    assert all(m["optim/grad_norm"] > 0 for m in found)
    assert summary["num_steps"] == NUM_STEPS


@pytest.mark.slow
def test_conversations_are_learnt_with_their_media(config: Config, local_ray: None) -> None:
    tree = config.model_dump(mode="json")
    tree |= {"run": {**tree["run"], "name": "sft"}, "num_steps": 40}
    tree |= {"sft": {"batch_size": 6, "until_loss": 1e3}}
    supervised = Config.model_validate({**tree, "optim": {**tree["optim"], "lr": 3e-3}})
    with TrainConsole("test", 40, console=Console(file=io.StringIO())) as console:
        sft.train(supervised, console)
    losses = [m["sft/loss"] for m in metrics(supervised)]
    assert len(losses) == sft.WINDOW  # the first at which there is a mean
    assert losses[-1] < 0.8 * losses[0]
