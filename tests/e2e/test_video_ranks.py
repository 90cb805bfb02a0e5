"""ZeRO-3 on two ranks is ZeRO-3 on one where families show a video's frames as images.

A rank may have a video where the other has an image, or nothing: ranks whose calls of the tower and the
projector differ wait for each other forever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, make_group, random_image

from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.trainer.driver import Trainer
from vlrl.types import Group
from vlrl.weights.manifest import Segment

TOLERANCE = 1e-5
FAMILIES = ["llava_onevision", "internvl", "minicpmv4_6", "gemma4"]
pytestmark = pytest.mark.slow(together=True)

MIXES: dict[str, list[tuple[int, int]]] = {
    "a video here, an image there": [(4, 0), (0, 1)],
    "a video here, nothing there": [(4, 0), (0, 0)],
    "an image and a video in one": [(3, 1), (0, 1)],
    "videos of two lengths": [(2, 0), (5, 0)],
}
"""Of each prompt the frames of its video, and its images."""


@dataclass
class Ranks:
    processor: Any
    trainers: list[Trainer]

    def group(self, name: str, num_frames: int, num_images: int) -> Group:
        seed = sum(map(ord, name)) + num_frames
        content: list[dict[str, Any]] = [
            {"type": "image", "image": random_image(70, 150, seed)} for _ in range(num_images)
        ]
        frames = [random_image(64, 96, seed + i) for i in range(num_frames)]
        content += [{"type": "video", "video": frames, "fps": 3.0}] if frames else []
        content.append({"type": "text", "text": f"Look at {name}."})
        sample = self.processor.sample({"id": name, "messages": [{"role": "user", "content": content}]})
        advantages = np.random.default_rng(seed).normal(size=2).tolist()
        return make_group([5, 3], sample=sample, advantages=advantages, seed=seed)

    def step(self, trainer: Trainer, groups: Sequence[Group], num_ranks: int) -> dict[str, torch.Tensor]:
        """The weights after one step on the groups."""
        options = PackOptions(
            num_ranks=num_ranks,
            max_tokens=2048,
            aggregation="token",
            max_completion_tokens=16,
            keep_zero_advantage=True,
            images_once=num_ranks == 2,
        )
        trainer.step(pack(groups, self.processor.pixels, options), "grpo", 1e-2)
        trainer.write_weights()
        return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


@pytest.fixture(scope="module", params=FAMILIES)
def ranks(
    request: pytest.FixtureRequest, tiny_family: Callable[[str], Path], local_ray: None
) -> Iterator[Ranks]:
    folder = tiny_family(request.param)
    optim = {"eps": 1e-2, "max_grad_norm": 0.5}  # so that comparing weights compares gradients
    options = {"cpus_per_rank": 0.5, "timeout_s": 60}
    processor = open_processor(family_config(folder))
    started = [
        Trainer(
            family_config(folder, optim=optim, trainer={"num_ranks": number, **options}),
            processor.banned_token_ids,
        )
        for number in (1, 2)
    ]
    try:
        for trainer in started:
            trainer.wait_ready()
        yield Ranks(processor, started)
    finally:
        for trainer in started:
            trainer.close()


@pytest.mark.parametrize("mix", MIXES)
def test_two_ranks_take_the_same_step_as_one(ranks: Ranks, mix: str) -> None:
    groups = [ranks.group(f"{mix} {number}", *media) for number, media in enumerate(MIXES[mix])]
    one, two = (ranks.step(t, groups, number) for number, t in enumerate(ranks.trainers, start=1))
    assert one.keys() == two.keys()
    for name in one:  # the bounds of Gemma 4's audio tower are infinite, which is no difference
        assert torch.allclose(one[name], two[name], rtol=0, atol=TOLERANCE), name
