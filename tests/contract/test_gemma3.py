"""Gemma 3 is not among vlrl's families: vLLM on a CPU lets its images see only backwards, unsaid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, make_context, random_image
from plain_model import model_of

from vlrl.engine.policy import VllmPolicy
from vlrl.errors import ConfigError
from vlrl.processors.auto import open_processor
from vlrl.processors.family import FamilyProcessor
from vlrl.rollout.groups import rollout_groups
from vlrl.types import Media, MediaShape, Trajectory


class Gemma3Processor(FamilyProcessor):
    """What the family would need: one short class. An image is a square of a fixed number of tokens."""

    end_of_turn = "<end_of_turn>"
    media_tokens = ("<start_of_image>", "<end_of_image>", "<image_soft_token>")

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        return 1, 1, 1

    def expand(self, shape: MediaShape) -> str:
        return str(self._hf.replace_image_token({"num_crops": [0]}, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, Any]:
        images = [np.array(m.frames[0]) for m in media or [self._blank()]]
        out = self._hf.image_processor(images=images, return_tensors="pt", input_data_format="channels_last")
        return {"pixel_values": out["pixel_values"].numpy()}


def sampled_logprobs(trajectory: Any) -> Any:
    (ledger,) = trajectory.ledgers
    return ledger.sampler_logprobs[ledger.loss_mask]


def plain_logprobs(model: Any, processor: Any, t: Trajectory, *, both_ways: bool) -> np.ndarray[Any, Any]:
    """transformers' own forward; images see themselves both ways, as trained, or only backwards."""
    ids = torch.tensor(t.ledgers[0].token_ids)[None]
    inputs = {k: torch.tensor(v) for k, v in processor.pixels(t.media).items()} if t.media else {}
    if both_ways:
        inputs["token_type_ids"] = (ids == model.config.image_token_id).long()
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), **inputs).logits[0, :-1].float()
    logits[:, list(processor.banned_token_ids)] = float("-inf")
    logprobs = torch.log_softmax(logits, -1).gather(1, ids[0, 1:, None])[:, 0].numpy()
    return logprobs[t.ledgers[0].loss_mask[1:]]


def test_it_is_refused_by_name(tiny_family: Callable[[str], Path]) -> None:
    with pytest.raises(ConfigError, match=r"'gemma3': .* both ways"):
        open_processor(family_config(tiny_family("gemma3")))


@pytest.mark.slow
def test_images_see_only_backwards_on_the_cpu(tiny_family: Callable[[str], Path], local_ray: None) -> None:
    """If this fails on a CPU, vLLM has learned it: register the family. On a GPU vLLM can do it already."""
    import asyncio

    folder = tiny_family("gemma3")
    config = family_config(folder, rollout={"group_size": 2, "max_tokens": 6})
    processor, model = Gemma3Processor(config), model_of(folder)
    policy = VllmPolicy(config, processor)
    try:
        policy.wait_ready()
        # Text on both sides: a line break beside an image would become one token with the image's own.
        look, which = ({"type": "text", "text": text} for text in ("Look", "Which?"))
        talks = [[look], [look, {"type": "image", "image": random_image(70, 150)}, which]]
        samples = [
            processor.sample({"id": str(i), "messages": [{"role": "user", "content": c}]})
            for i, c in enumerate(talks)
        ]
        context = make_context(policy, processor, config)
        text, with_image = asyncio.run(rollout_groups(samples, context, seed_path=(0,))).groups
    finally:
        policy.close()

    def differences(group: Any, both_ways: bool) -> float:
        return max(
            float(
                np.abs(plain_logprobs(model, processor, t, both_ways=both_ways) - sampled_logprobs(t)).max()
            )
            for t in group.trajectories
        )

    assert differences(text, both_ways=True) < 1e-4
    works, fails = (True, False) if torch.cuda.is_available() else (False, True)
    assert differences(with_image, both_ways=works) < 1e-4
    assert differences(with_image, both_ways=fails) > 1e-3
