"""GRPO on one page: sample → roll out → score → advantage → pack → step → sync.

    rows ─► samples ─► policy (vLLM) ─► trajectories ─► rewards ─► advantages ─► micro-batches
                          ▲                                                           │
                          └── weights, version s+1 ◄── shared memory ◄── trainer (ZeRO-3) step s

Synchronous: the engine waits while the trainer steps and the other way round, so every token is drawn
under the weights it trains (staleness 0). What DeepSeekMath's GRPO (arXiv 2402.03300) has and this page
leaves out by default: the KL term (algorithm.kl_coef, Eq. 3), off as in DAPO; process rewards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.console import TrainConsole
from vlrl.credit import assign_credit
from vlrl.evaluate import hold_out, hold_out_before, verdict
from vlrl.pack import pack
from vlrl.parity import check_parity, require_parity
from vlrl.rewards.judge.stats import take_judge_metrics
from vlrl.rollout import require_played, require_scored, rollout_groups, score_groups
from vlrl.run import Clock, Run
from vlrl.schedule import learning_rate
from vlrl.stats import episode_stats, rollout_stats
from vlrl.types import Group


def train(config: Config, console: TrainConsole, *, resume: bool = False) -> dict[str, object]:
    """Train by GRPO and return the run's summary, which is also written to summary.json.

    Raises:
        VlrlError: with what is wrong, where, and the remedy.
        Interrupted: after a clean save, on Ctrl-C or SIGTERM.
    """
    with Run(config, console, train=True, generate=True, resume=resume) as run:
        check_parity(run)
        before = hold_out_before(run)
        console.phase("GRPO", config.num_steps)
        with run.phases.measure("GRPO"):
            for step in run.steps():
                metrics = grpo_step(run, step)
                if config.eval.every and (step + 1) % config.eval.every == 0 and step + 1 < config.num_steps:
                    metrics |= hold_out(run, f"after step {step}", config.eval.during_samples)
                run.sinks.log(step, metrics)
                console.step(step, metrics)
        console.phase("finishing")
        after = hold_out(run, "after training", config.eval.num_samples, keep_as="after")
        run.export_model()
        return run.write_summary(num_parameters=run.trainer.num_parameters, **verdict(config, before, after))


def grpo_step(run: Run, step: int) -> dict[str, float]:
    """One step of GRPO: draw a batch, score it, learn from it, hand the new weights to the engine."""
    config, clock = run.config, Clock()
    with clock.measure("wait"):
        samples = run.stream.batch(step)
    with clock.measure("generate"):
        drawn = run.runner.run(
            rollout_groups(
                samples,
                run.setting,
                seed_path=(config.run.seed, step),
                stragglers=config.episodes.stragglers,
            )
        )
        require_played(drawn, config.episodes.max_failed_share)
    groups = drawn.groups
    with clock.measure("reward"):
        failures = run.runner.run(score_groups(groups, run.reward.score_all, step))
        require_scored(failures, sum(len(g.trajectories) for g in groups), config.scoring.max_failed_share)
        assign_credit(groups, config.algorithm, run.masks)
    if failures:  # masked and counted (law 7); the first says what to mend
        run.console.note(f"step {step}: {len(failures)} completions could not be scored; {failures[0]}")
    metrics = rollout_stats(groups, failures) | episode_stats(groups, drawn.counts)
    metrics |= run.stream.metrics | take_judge_metrics()
    with clock.measure("train"):
        lr = learning_rate(config.optim, step, config.num_steps)
        for index, batch in enumerate(minibatches(groups, run)):
            update, difference, sample_id = run.trainer.step(batch, "grpo", lr)
            if index == 0:  # later ones are computed under newer weights than the tokens were drawn with
                metrics |= {"parity/max_abs_logprob_diff": difference}
                if config.parity.every_step:
                    require_parity(difference, sample_id, config, when=f"step {step}")
            metrics |= update
    with clock.measure("sync"):
        run.trainer.write_weights()
        run.policy.load_weights(run.trainer.manifest, version=step + 1)
    return metrics | clock.metrics(
        num_tokens=sum(t.num_action_tokens for g in groups for t in g.trajectories)
    )


def minibatches(groups: Sequence[Group], run: Run) -> Iterator[Batch]:
    """Each optimizer step's share of the groups, packed."""
    config = run.config
    size = len(groups) // config.algorithm.num_minibatches
    for start in range(0, len(groups), size):
        yield pack(
            groups[start : start + size],
            run.processor.pixels,
            num_ranks=config.trainer.num_ranks,
            max_tokens=config.trainer.max_tokens_per_micro_batch,
            max_pixels=config.trainer.max_pixels_per_micro_batch,
            aggregation=config.algorithm.aggregation,
            max_completion_tokens=config.rollout.max_tokens,
            keep_zero_advantage=config.algorithm.kl_coef > 0,
        )
