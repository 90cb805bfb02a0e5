"""Train from Python objects, without a config file.

    python examples/library.py

A tiny model with random weights first learns to answer with a color, then to look at the image. With a real
model the first part is not needed.
"""

import random
from typing import Any

from PIL import Image

from vlrl import GRPO, SFT
from vlrl.model.tiny import build_tiny_qwen2_5_vl

COLORS, QUESTION = ("red", "green", "blue", "yellow"), "Which color is this?"


def row(color: str, **more: Any) -> dict[str, Any]:
    return {"prompt": QUESTION, "image": Image.new("RGB", (56, 56), color), "answer": color, **more}


def right_color(completion: str, answer: str) -> float:
    return float(completion.strip() == answer)


# A tiny model with random weights learns to answer with a color, any color.
tiny = build_tiny_qwen2_5_vl("runs/library-tiny", [QUESTION, *COLORS])
guesses = [
    row(color, completion=random.Random(index).choice(COLORS)) for index, color in enumerate(COLORS * 64)
]
warm = SFT(tiny, guesses, num_steps=60, optim={"lr": 1e-3}).train()

# GRPO teaches it to look at the image.
trainer = GRPO(
    warm.model,
    [row(color) for color in COLORS * 16],
    right_color,
    eval_rows=[row(color) for color in COLORS],
    num_steps=60,
    rollout={"prompts_per_step": 8, "group_size": 8, "max_tokens": 8},
    optim={"lr": 5e-4},
    generator={"max_model_len": 256},
)
result = trainer.train()
print([round(step["reward/mean"], 2) for step in result.metrics], result.model)
print(result.evaluate([row("red"), row("blue")]).accuracy_greedy)
