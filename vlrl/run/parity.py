"""Law 5: engine and trainer must agree on every generated token's logprob, or the run stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vlrl.algorithm.credit import group_with_advantages
from vlrl.algorithm.differences import LogprobDifferences
from vlrl.config import Config
from vlrl.errors import EngineError
from vlrl.packing.layout import PixelsFn, media_themselves
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.run.players.heldout import Asking
from vlrl.run.run import Run
from vlrl.trainer.driver import Trainer
from vlrl.trainer.result import fresh_differences
from vlrl.types import Group, Score

QUANTILE = 0.999
"""In bfloat16 the share of the tokens whose difference is bounded: single ones are off by nats."""
MEAN_SHARE = 0.1
"""In bfloat16 the largest mean difference, as a share of the tolerance."""


def logprob_differences(
    groups: Sequence[Group], trainer: Trainer, pixels: PixelsFn, config: Config
) -> LogprobDifferences:
    """The |trainer - sampler| logprobs of all generated tokens.

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
    differences = LogprobDifferences()
    for micro_batches, logprobs in zip(batch, trainer.logprobs(batch), strict=True):
        for micro_batch, trainer_logprobs in zip(micro_batches, logprobs, strict=True):
            differences += fresh_differences(trainer_logprobs, micro_batch)
    return differences


def parity_metrics(differences: LogprobDifferences) -> dict[str, float]:
    """The `parity/` metrics; none if no token was fresh."""
    if not differences.num_tokens:
        return {}
    return {
        "parity/max_abs_logprob_diff": differences.largest,
        "parity/p999_abs_logprob_diff": differences.quantile(QUANTILE),
        "parity/mean_abs_logprob_diff": differences.mean,
    }


def require_parity(differences: LogprobDifferences, config: Config, *, when: str) -> None:
    """Raise EngineError if the differences exceed the config's tolerance.

    In float32 the largest one counts. Rounding to bfloat16 has a long tail, whatever is right or wrong, so
    there the mean and the QUANTILE count, which a fault in every token moves.
    """
    tolerance, dtype = config.parity_tolerance, config.model.dtype
    if dtype == "float32":
        bounds = [("the largest difference is", differences.largest, tolerance)]
    else:
        bounds = [
            (f"the {QUANTILE:.1%} quantile of the differences is", differences.quantile(QUANTILE), tolerance),
            ("the mean difference is", differences.mean, MEAN_SHARE * tolerance),
        ]
    for what, found, most in bounds:
        if found > most:
            raise EngineError(
                f"{when}: trainer and engine disagree: {what} {found:.2e} nats, the bound for {dtype} is "
                f"{most:.2g} (parity.tolerance={tolerance:g}); the largest, {differences.largest:.2e}, is in "
                f"{differences.sample_id!r}. Training would follow wrong ratios. In float32 that is a bug: "
                "report it. In bfloat16 some difference is rounding: see docs/weights.md before you raise "
                "the tolerance"
            )


def check_parity(run: Run, *, when: str = "before training") -> None:
    """Law 5, before the first step or after an update: both engines agree on a few generated completions.

    They are played where the run's episodes are, so `run.rollouts` must be open.
    """
    config = run.config
    if config.parity.num_samples == 0:
        run.console.note("parity.num_samples=0: the engines' agreement was not checked")
        return
    run.console.phase(f"checking parity {when}")
    samples = run.first_samples[: config.parity.num_samples]
    run.turns.to_engines()
    answers = run.runner.run(run.rollouts.answer(samples, Asking("parity")))
    groups = [group for of_sample in answers.of_samples for group in of_sample]
    run.turns.to_trainer()
    differences = run.run_blocking(logprob_differences, groups, run.trainer, media_themselves, config)
    require_parity(differences, config, when=when)
    run.console.note(
        f"trainer and engine agree to {differences.largest:.1e} nats on {len(groups)} prompts "
        f"({differences.mean:.1e} on average)"
    )
