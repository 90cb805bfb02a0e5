"""What the engines must agree with: transformers' model, holding the weights of a segment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vlrl.algorithm.credit import group_with_advantages
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.omni.thinker import model_class
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group, Score
from vlrl.weights.manifest import Manifest, Segment


def model_of(folder: Path, manifest: Manifest | None = None, **options: Any) -> Any:
    """The model in a folder, with a segment's weights if one is given; every weight must be there."""
    from transformers import AutoConfig

    kind = model_class(AutoConfig.from_pretrained(folder))
    model = kind.from_pretrained(folder, dtype=torch.float32, **options)
    if manifest is not None:
        segment = {name: tensor.clone() for name, tensor in Segment(manifest)}
        parameters = dict(model.named_parameters())
        assert parameters.keys() == segment.keys()
        for name, parameter in parameters.items():
            parameter.data.copy_(segment[name])
    return model


def largest_difference(model: Any, processor: Any, groups: Sequence[Group], temperature: float) -> float:
    """Largest |model - sampler| logprob over all generated tokens, in nats."""
    for group in groups:
        for trajectory in group.trajectories:
            trajectory.score = Score(0.0, {})
    [micro_batches] = pack(
        [group_with_advantages(group.trajectories, [1.0] * len(group.trajectories)) for group in groups],
        processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=4096,
            aggregation="token",
            max_completion_tokens=32,
            keep_zero_advantage=True,
        ),
    )
    wrapped = TreeLogprobs(model, temperature=temperature, banned_token_ids=processor.banned_token_ids)
    worst = 0.0
    for micro_batch in micro_batches:
        with torch.no_grad():
            logprobs, _ = wrapped(DeviceBatch.of(micro_batch, torch.device("cpu")))
        worst = max(worst, float(np.abs(logprobs.numpy() - micro_batch.sampler_logprobs).max()))
    return worst
