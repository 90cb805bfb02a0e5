"""What ranks know of their critic, asked in their own processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loaded_ranks
import numpy as np
from loaded_ranks import Slices

from vlrl.batch import MicroBatch
from vlrl.config import Config

Steps = Sequence[Sequence[MicroBatch]]


@dataclass
class Trained:
    """A rank after some steps.

    Attributes:
        policy: slice and whole shape of each weight by name.
        critic: of the critic's, with its head.
        metrics: of each step, the same on all ranks.
        norms: of the policy's gradient, by step.
        said: by loading a checkpoint.
    """

    policy: Slices
    critic: Slices
    metrics: list[Mapping[str, float]]
    norms: list[float]
    said: list[str]


def trained(
    config: Config,
    rank: int,
    port: int,
    steps: Steps,
    saved: Path | None = None,
    loaded: Path | None = None,
    naps: bool = False,
) -> Trained:
    """Start a rank, load a checkpoint if there is one, take some steps, and save.

    With naps it gives its memory up after each step, as for an engine, and takes it back.
    """
    running = loaded_ranks._started(config, rank, port)
    said = running.load_state(str(loaded)) if loaded is not None else []
    results = []
    for part in steps:
        results.append(running.step(part, "grpo", 1e-3))
        if naps:
            assert running.sleep() > 0
            running.wake()
    if saved is not None:
        running.save_state(str(saved))
    critic = running._regularizers.critic
    policy = loaded_ranks._held(running._engine.module.model).slices
    values: Slices = loaded_ranks._held(critic.engine.module).slices if critic is not None else {}
    return Trained(policy, values, [r.metrics for r in results], [r.grad_norm for r in results], said)


def estimated(config: Config, rank: int, port: int, batches: Sequence[MicroBatch]) -> list[dict[str, Any]]:
    """Steps [M, 3], values, returns, advantages and weights of each micro-batch's tokens before a step."""
    running = loaded_ranks._started(config, rank, port)
    held, found = running._regularizers, []
    held.begin(running._passes.on_device(batch, ()) for batch in batches)
    for batch, terms in zip(batches, held._surveyed, strict=True):
        arrays = (terms.targets.old_values, terms.targets.returns, terms.advantages, terms.targets.weights)
        names = ("values", "returns", "advantages", "weights")
        tokens = {name: np.array(array) for name, array in zip(names, arrays, strict=True)}
        found.append({"steps": batch.steps, **tokens})
    return found
