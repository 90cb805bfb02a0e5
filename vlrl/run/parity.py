"""Law 5: engine and trainer must agree on every generated token's logprob, or the run stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vlrl.algorithm.credit import group_with_advantages
from vlrl.config import Config
from vlrl.errors import EngineError
from vlrl.packing.layout import PixelsFn
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import rollout_groups
from vlrl.run.run import Run
from vlrl.trainer.driver import Trainer
from vlrl.trainer.result import worst_difference
from vlrl.types import Group, Score


def logprob_difference(
    groups: Sequence[Group], trainer: Trainer, pixels: PixelsFn, config: Config
) -> tuple[float, str]:
    """Largest |trainer - sampler| logprob over all generated tokens, in nats, and the sample it is in.

    Args:
        groups: generated under the weights the trainer has now; scores and advantages do not matter.
        trainer: computes its own logprobs of the same tokens.
        pixels: the processor's pixel function.
        config: ranks and token budget.
    """
    probes = [
        group_with_advantages(
            [replace(t, score=Score(0.0, {})) for t in g.trajectories], [1.0] * len(g.trajectories)
        )
        for g in groups
    ]
    batch = pack(probes, pixels, PackOptions.of(config))
    worst = (0.0, "")
    for micro_batches, logprobs in zip(batch, trainer.logprobs(batch), strict=True):
        for micro_batch, trainer_logprobs in zip(micro_batches, logprobs, strict=True):
            worst = max(worst, worst_difference(trainer_logprobs, micro_batch))
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
    """Law 5, before the first step or after an update: both engines agree on a few generated completions."""
    config = run.config
    if config.parity.num_samples == 0:
        run.console.note("parity.num_samples=0: the engines' agreement was not checked")
        return
    run.console.phase(f"checking parity {when}")
    samples = run.first_samples[: config.parity.num_samples]
    seeds = (config.run.seed, "parity")
    groups = run.runner.run(rollout_groups(samples, run.context, seed_path=seeds)).groups
    difference, sample_id = run.run_blocking(
        logprob_difference, groups, run.trainer, run.processor.pixels, config
    )
    require_parity(difference, sample_id, config, when=when)
    run.console.note(f"trainer and engine agree to {difference:.1e} nats on {len(groups)} prompts")
