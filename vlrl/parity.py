"""Law 5: engine and trainer must agree on every drawn token's logprob, or the run stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vlrl.config import Config
from vlrl.credit import graded
from vlrl.errors import EngineError
from vlrl.layout import PixelsFn
from vlrl.pack import pack
from vlrl.rollout import rollout_groups
from vlrl.run import Run
from vlrl.trainer import Trainer
from vlrl.types import Group, Score


def logprob_difference(
    groups: Sequence[Group], trainer: Trainer, pixels: PixelsFn, config: Config
) -> tuple[float, str]:
    """Largest |trainer - sampler| logprob over all drawn tokens, in nats, and the sample it is in.

    Args:
        groups: drawn under the weights the trainer has now; scores and advantages do not matter.
        trainer: computes its own logprobs of the same tokens.
        pixels: the processor's pixel function.
        config: ranks and token budget.
    """
    probes = [
        graded([replace(t, score=Score(0.0, {})) for t in g.trajectories], [1.0] * len(g.trajectories))
        for g in groups
    ]
    batch = pack(
        probes,
        pixels,
        num_ranks=config.trainer.num_ranks,
        sequence_parallel=config.trainer.sequence_parallel,
        max_tokens=config.trainer.max_tokens_per_micro_batch,
        max_pixels=config.trainer.max_pixels_per_micro_batch,
        aggregation="token",
        max_completion_tokens=config.rollout.max_tokens,
        keep_zero_advantage=True,
        pictures_once=True,
    )
    worst = (0.0, "")
    for micro_batches, logprobs in zip(batch, trainer.logprobs(batch), strict=True):
        for micro_batch, trainer_logprobs in zip(micro_batches, logprobs, strict=True):
            if len(trainer_logprobs):
                difference = np.abs(trainer_logprobs - micro_batch.sampler_logprobs)
                difference = np.nan_to_num(
                    difference, nan=np.inf, posinf=np.inf
                )  # nan would pass every comparison
                token = int(difference.argmax())
                owner = micro_batch.token_sample_ids[int(micro_batch.sequence_ids[token])]
                worst = max(worst, (float(difference[token]), owner))
    return worst


def require_parity(difference: float, sample_id: str, config: Config, *, when: str) -> None:
    """Raise EngineError if a difference exceeds the config's tolerance."""
    tolerance = config.parity_tolerance
    if difference > tolerance:
        raise EngineError(
            f"{when}: trainer and engine disagree by {difference:.2e} nats on a token of {sample_id!r}, "
            f"parity.tolerance is {tolerance:.0e}; training would follow wrong ratios. In bfloat16 some "
            "difference is rounding (raise parity.tolerance); in float32 it is a bug: report it"
        )


def check_parity(run: Run, *, when: str = "before training") -> None:
    """Law 5, before the first step or after an update: both engines agree on a few drawn completions."""
    config = run.config
    if config.parity.num_samples == 0:
        run.console.note("parity.num_samples=0: the engines' agreement was not checked")
        return
    run.console.phase(f"checking parity {when}")
    samples = run.first_samples[: config.parity.num_samples]
    seeds = (config.run.seed, "parity")
    groups = run.runner.run(rollout_groups(samples, run.setting, seed_path=seeds)).groups
    difference, sample_id = run.aside(logprob_difference, groups, run.trainer, run.processor.pixels, config)
    require_parity(difference, sample_id, config, when=when)
    run.console.note(f"trainer and engine agree to {difference:.1e} nats on {len(groups)} prompts")
