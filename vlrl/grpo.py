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

from vlrl.advantage import assign_advantages
from vlrl.config import Config
from vlrl.console import TrainConsole
from vlrl.evaluate import Evaluation, evaluate
from vlrl.pack import pack
from vlrl.parity import logprob_difference, require_parity
from vlrl.records import rollout_records, write_rollouts
from vlrl.rollout import rollout_groups, score_groups
from vlrl.run import Clock, Run
from vlrl.schedule import learning_rate
from vlrl.stats import rollout_stats
from vlrl.types import Batch, Group


def train(config: Config, console: TrainConsole, *, resume: bool = False) -> dict[str, object]:
    """Train by GRPO and return the run's summary, which is also written to summary.json.

    Raises:
        VlrlError: with what is wrong, where, and the remedy.
        Interrupted: after a clean save, on Ctrl-C or SIGTERM.
    """
    with Run(config, console, train=True, generate=True, resume=resume) as run:
        check_parity(run)
        before = hold_out(run, "before", config.eval.num_samples)
        console.phase("GRPO", config.num_steps)
        with run.phases.measure("GRPO"):
            for step in run.steps():
                metrics = grpo_step(run, step)
                if config.eval.every and (step + 1) % config.eval.every == 0 and step + 1 < config.num_steps:
                    during = hold_out(run, None, config.eval.during_samples)
                    metrics |= during.metrics() if during else {}
                run.sinks.log(step, metrics)
                console.step(step, metrics)
        after = hold_out(run, "after", config.eval.num_samples)
        run.export_model()
        return run.write_summary(num_parameters=run.trainer.num_parameters, **verdict(config, before, after))


def grpo_step(run: Run, step: int) -> dict[str, float]:
    """One step of GRPO: draw a batch, score it, learn from it, hand the new weights to the engine."""
    config, clock = run.config, Clock()
    with clock.measure("wait"):
        samples = run.stream.batch(step)
    with clock.measure("generate"):
        groups = run.runner.run(
            rollout_groups(
                samples, run.policy, run.processor, config.rollout, seed_path=(config.run.seed, step)
            )
        )
    with clock.measure("reward"):
        failures = run.runner.run(score_groups(groups, run.reward.score))
        assign_advantages(groups, scale_by_std=config.algorithm.scale_by_std)
    metrics = rollout_stats(groups, failures)
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
    return metrics | clock.metrics(num_tokens=sum(t.num_action_tokens for g in groups for t in g.trajectories))


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
            aggregation=config.algorithm.aggregation,
            max_completion_tokens=config.rollout.max_tokens,
            keep_zero_advantage=config.algorithm.kl_coef > 0,
        )


def check_parity(run: Run) -> None:
    """Law 5, before the first step: engine and trainer agree on a few drawn completions."""
    config = run.config
    if config.parity.num_samples == 0:
        run.console.note("parity.num_samples=0: the engines' agreement was not checked")
        return
    run.console.phase("checking parity")
    samples = run.first_samples[: config.parity.num_samples]
    seeds = (config.run.seed, "parity")
    groups = run.runner.run(rollout_groups(samples, run.policy, run.processor, config.rollout, seed_path=seeds))
    difference, sample_id = logprob_difference(groups, run.trainer, run.processor.pixels, config)
    require_parity(difference, sample_id, config, when="before training")
    run.console.note(f"trainer and engine agree to {difference:.1e} nats on {len(groups)} prompts")


def hold_out(run: Run, name: str | None, num_samples: int | None) -> Evaluation | None:
    """Evaluate on held-out samples; with a name, keep some rollouts as rollouts/NAME.jsonl for the report."""
    samples = run.heldout(num_samples)
    if not samples:
        return None
    if name:
        run.console.phase(f"evaluating {name} training", None)
    with run.phases.measure("evaluate"):
        result = run.runner.run(evaluate(samples, run.policy, run.processor, run.reward.score, run.config))
    if name:
        shown = result.sampled[: run.config.logging.num_report_rollouts]
        records = rollout_records(shown, run.processor, phase=name, step=run.first_step)
        media = [m for g in shown for t in g.trajectories for m in t.media]
        write_rollouts(run.config.run_dir / "rollouts" / f"{name}.jsonl", records, media)
        run.console.note(
            f"held-out accuracy {name}: {result.accuracy_greedy:.3f} greedy, {result.accuracy_sampled:.3f} sampled"
        )
    return result


def verdict(config: Config, before: Evaluation | None, after: Evaluation | None) -> dict[str, object]:
    """The summary's accuracies, and whether the run reached what its config promised."""
    if before is None or after is None:
        return {}
    target = config.eval.target_accuracy
    return {
        "heldout_accuracy_before": before.accuracy_greedy,
        "heldout_accuracy_after": after.accuracy_greedy,
        "heldout_accuracy_before_greedy": before.accuracy_greedy,
        "heldout_accuracy_after_greedy": after.accuracy_greedy,
        "heldout_accuracy_before_sampled": before.accuracy_sampled,
        "heldout_accuracy_after_sampled": after.accuracy_sampled,
        "num_heldout": after.num_samples,
        "target_accuracy": target,
        "target_reached": None if target is None else after.accuracy_greedy >= target,
    }
