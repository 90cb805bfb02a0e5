"""A training loop of one's own: each group is its own baseline, in forty lines.

    python examples/own_loop.py

A tiny model with random weights first learns to answer with a color, then to look at the image. With a real
model the first part is not needed.
"""

import random
from typing import Any

import numpy as np
from PIL import Image

from vlrl import TrainingClient
from vlrl.model.tiny import build_tiny_qwen2_5_vl

COLORS, QUESTION = ("red", "green", "blue", "yellow"), "Which color is this?"


def row(color: str, **more: Any) -> dict[str, Any]:
    return {"prompt": QUESTION, "image": Image.new("RGB", (56, 56), color), "answer": color, **more}


random.seed(0)
tiny = build_tiny_qwen2_5_vl("runs/own-loop-tiny", [QUESTION, *COLORS])
rollout, generator = {"group_size": 8, "max_tokens": 8}, {"max_model_len": 256}
with TrainingClient(tiny, rollout=rollout, generator=generator) as client:
    # It learns to answer with a color, any color.
    for _ in range(60):
        client.forward_backward_targets(
            [row(color, target=random.choice(COLORS)) for color in COLORS for _ in range(8)]
        )
        client.optim_step(1e-3)

    # It is rewarded for the right one.
    for step in range(300):
        groups = client.sample([row(color) for color in COLORS * 2])
        rewards = [
            [float(t.completion.strip() == t.sample.answer) for t in group.trajectories] for group in groups
        ]
        client.forward_backward(
            groups, [(r - np.mean(r)) / (np.std(r) + 1e-6) for r in map(np.array, rewards)]
        )
        client.optim_step(5e-4)
        print(step, np.mean(rewards))
        if np.mean(rewards) > 0.95:
            break

    answers = client.sample([row(color) for color in COLORS], 1, greedy=True)
    accuracy = np.mean(
        [group.trajectories[0].completion == group.trajectories[0].sample.answer for group in answers]
    )
    print(accuracy, client.export("runs/own-loop-model"))
