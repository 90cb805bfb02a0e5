"""What ranks know of each other's tokens, and their moving reference, asked in their own processes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import loaded_ranks
import torch.distributed as dist
from loaded_ranks import Slices
from torch import Tensor

from vlrl.batch import MicroBatch
from vlrl.config import Config
from vlrl.config.algorithm import AlgorithmConfig

Steps = Sequence[Sequence[MicroBatch]]


def surveyed(
    rank: int, count: int, port: int, keys: Mapping[str, Any], batches: Sequence[Mapping[str, Tensor]]
) -> list[dict[str, Tensor]]:
    """Advantages, factors and penalties of a rank's micro-batches.

    A micro-batch has logprobs of sampler, reference and policy, advantages, entropies and sequence ids: [M].
    Ranks share sequences if they are said to.
    """
    from vlrl.model.sequence_parallel import later_sums
    from vlrl.trainer.regularizers.survey import Passes, survey

    group = _joined(rank, count, port)
    shares = keys.get("shares", False)
    algorithm = AlgorithmConfig.model_validate({k: v for k, v in keys.items() if k != "shares"})
    passes = Passes(
        reference=lambda batch: batch.reference if algorithm.kl_coef else None,  # type: ignore[attr-defined]
        policy=lambda batch: (batch.policy, batch.entropies),  # type: ignore[attr-defined]
        later=(lambda values, ids: later_sums(group, values, ids)) if shares else None,
    )
    given: list[Any] = [SimpleNamespace(**batch) for batch in batches]
    return [
        {
            "advantages": terms.advantages,
            **({} if terms.factors is None else {"factors": terms.factors, "penalties": terms.penalties}),
        }
        for terms in survey(given, algorithm, passes, algorithm.kl_coef, seed=5)
    ]


@dataclass
class Trained:
    """A rank after some steps.

    Attributes:
        policy: slice and whole shape of each weight by name.
        reference: of the reference's.
        kl: sum over a step's tokens, by step.
        coefficients: that adapt, by step.
        said: by loading a checkpoint.
    """

    policy: Slices
    reference: Slices
    kl: list[float]
    coefficients: list[Mapping[str, float]]
    said: list[str]


def trained(
    config: Config, rank: int, port: int, steps: Steps, saved: Path | None = None, loaded: Path | None = None
) -> Trained:
    """Start a rank, load a checkpoint if there is one, take some steps, and save."""
    running = loaded_ranks._started(config, rank, port)
    said = running.load_state(str(loaded)) if loaded is not None else []
    results = [running.step(part, "grpo", 1e-3) for part in steps]
    if saved is not None:
        running.save_state(str(saved))
    policy, reference = (
        loaded_ranks._held(engine.module.model).slices
        for engine in (running._engine, running._reference.engine)
    )
    kl, coefficients = [r.sums.kl_reference for r in results], [r.metrics for r in results]
    return Trained(policy, reference, kl, coefficients, said)


def with_copies(
    config: Config, rank: int, port: int, steps: Steps, saved: Path | None = None, loaded: Path | None = None
) -> list[Slices]:
    """What a rank of several policies holds at first, and after each step and the copies due then."""
    running = loaded_ranks._started(config, rank, port)
    if loaded is not None:
        running.load_state(str(loaded))
    held = [loaded_ranks._held(running._engine.module.model).slices]
    for number, part in enumerate(steps, start=1):
        running.step(part, "grpo", 1e-2)
        running.refresh_copies(number)
        held.append(loaded_ranks._held(running._engine.module.model).slices)
    if saved is not None:
        running.save_state(str(saved))
    return held


@cache
def _joined(rank: int, count: int, port: int) -> dist.ProcessGroup:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count)
    return dist.new_group(list(range(count)))
