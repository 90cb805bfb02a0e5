"""GRPO on one page: sample → roll out → score → advantage → pack → step → sync.

    rows ─► samples ─► policy (vLLM) ─► trajectories ─► rewards ─► advantages ─► micro-batches
                          ▲                                                           │
                          └── weights, version s+1 ◄── shared memory ◄── trainer (ZeRO-3) step s

Synchronous by default: engine and trainer take turns, so every token is generated under the weights it
trains. With asynchronous.mode=async `generate_groups` goes on all the time, at most max_staleness updates
behind; `vlrl.rollout.collector` has both. With `preferences` the best and the worst of each group are a pair
(online DPO) in place of advantages. Off by default, unlike in DeepSeekMath's GRPO (arXiv 2402.03300):
the KL term (algorithm.kl_coef, Eq. 3), as in DAPO, and process rewards. A bonus for entropy is off too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from vlrl.algorithm.credit import assign_credit
from vlrl.algorithm.preferences.online import assign_pairs
from vlrl.batch import StepBatch
from vlrl.config import Config
from vlrl.data import row_counts
from vlrl.evaluate import hold_out, hold_out_before, hold_out_during, verdict
from vlrl.packing.options import PackOptions
from vlrl.rollout.buffer import Ticket
from vlrl.rollout.collector import CollectedBatch
from vlrl.rollout.groups import rollout_groups, score_groups
from vlrl.rollout.outcome import Round, TicketOutcome, outcome_of
from vlrl.run.parity import check_parity, parity_metrics, require_parity
from vlrl.run.players.player import Player
from vlrl.run.recovery import run_to_end
from vlrl.run.run import Clock, Run
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.stats import episode_stats, rollout_stats, stats_by_policy
from vlrl.trainer.objective import rl_objective
from vlrl.trainer.result import mean_of_updates
from vlrl.trainer.schedule import learning_rate


def train(
    config: Config | Mapping[str, Any], console: TrainConsole | None = None, *, resume: bool = False
) -> dict[str, object]:
    """Train by GRPO and return the run's summary, which is also written to summary.json.

    `vlrl.run.recovery.run_to_end` has the arguments, the errors, and what happens if the trainer dies.
    """
    return run_to_end(train_once, config, console, resume)


def train_once(config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
    """`train`, until it is done or something dies."""
    rl_objective(config)  # refuses a loss that groups have no pairs for
    with Run(config, console, train=True, generate=True, resume=resume) as run:
        run.collect(generate_groups)
        check_parity(run)
        before = hold_out_before(run)
        for step in run.steps("GRPO"):
            run.log(step, grpo_step(run, step) | hold_out_during(run, step))
        console.phase("finishing")
        run.runner.run(run.collector.close())
        after = hold_out(run, "after training", config.eval.num_samples, keep_as="after")
        run.export_model()
        run.signal.finish(config.run_dir)
        return run.write_summary(num_parameters=run.trainer.num_parameters, **verdict(config, before, after))


async def generate_groups(player: Player, tickets: Sequence[Ticket[TicketOutcome]]) -> Round:
    """What tickets become: samples, rolled out, scored, with the advantage of each token."""
    config, clock = player.config, Clock()
    positions = [ticket.position for ticket in tickets]
    with clock.measure("wait"):
        rows = await player.samples(tickets)
    result = await rollout_groups(
        [row.sample for row in rows],
        player.context,
        seed_paths=[(config.run.seed, p // config.rollout.prompts_per_step, p) for p in positions],
        greedy_beside=config.algorithm.has_greedy_baseline,
        stragglers=config.episodes.stragglers,
        branching=config.episodes.branching,
        policies=player.policies(positions),
    )
    with clock.measure("reward"):
        failures = await score_groups(result.groups, player.reward.score_all, tickets[0].version)
        if config.preferences is None:
            assign_credit(result.groups, config.algorithm, player.masks, player.untrained)
        else:
            assign_pairs(result.groups, player.masks)
    played = zip(result.of_samples, rows, strict=True)
    outcomes = [outcome_of(groups, player.filters, row.number, player.untrained) for groups, row in played]
    return Round(outcomes, failures, result.counts, row_counts(rows), clock.seconds)


def minibatches(run: Run, collected: CollectedBatch, step: int) -> Iterator[StepBatch]:
    """What each optimizer step trains: its share of the groups, packed where they are."""
    algorithm, outcomes = run.config.algorithm, collected.trained
    num_groups = sum(len(outcome.kept) for outcome in outcomes)
    size = max(1, -(-num_groups // algorithm.num_minibatches))  # some groups may have been left out
    shares = (slice(at, at + size) for at in range(0, num_groups, size))
    options = PackOptions.of(run.config, algorithm)
    batches: Iterator[StepBatch] = (run.rollouts.pack(outcomes, share, options, step) for share in shares)
    if algorithm.correction.recomputes and run.config.preferences is None:
        batches = iter(run.run_blocking(run.trainer.with_proximal, batches))
    while (batch := run.run_blocking(next, batches, None)) is not None:
        yield batch


def grpo_step(run: Run, step: int) -> dict[str, float]:
    """One step of GRPO: a batch of generated groups, learn from it, hand the new weights to the engine."""
    config, clock = run.config, Clock(run.timeline.recorder("trainer", step=step))
    run.turns.to_engines()
    with clock.measure("generate"):
        collected = run.runner.run(run.collector.batch())
    clock.split("generate", collected.seconds)
    run.samples.log(step, collected)
    if collected.failures:  # left out of their groups and counted (law 7); the first says what to fix
        failures = len(collected.failures)
        run.console.note(
            f"step {step + 1}: {failures} completions could not be scored; {collected.failures[0]}"
        )
    judged = [*collected.groups, *collected.dropped]
    metrics = rollout_stats(judged, collected.failures) | episode_stats(judged, collected.counts)
    metrics |= stats_by_policy(judged, config)
    metrics |= {name: float(count) for name, count in collected.rows.items()}
    metrics |= collected.metrics | run.rollouts.take_published() | run.rollouts.take_counts()
    metrics |= run.policy.take_metrics()
    with clock.measure("train"):
        run.turns.to_trainer()
        lr, updates = learning_rate(config.optim, step, config.num_steps), []
        for index, batch in enumerate(minibatches(run, collected, step)):
            update, differences = run.run_blocking(run.trainer.step, batch, rl_objective(config), lr)
            updates.append(update)
            # Later ones are computed under newer weights than the tokens were generated with.
            if index == 0:
                metrics |= parity_metrics(differences)
                if config.parity.every_step:
                    require_parity(differences, config, when=f"step {step + 1}")
        metrics |= mean_of_updates(updates)
        run.run_blocking(run.trainer.refresh_copies, step + 1)
    run.run_blocking(run.kept.keep, step, collected)
    with clock.measure("sync"):
        probes = config.weights.probe_every > 0 and (step + 1) % config.weights.probe_every == 0
        paused_s = run.run_blocking(partial(run.turns.update, step + 1, checked=probes))
        run.timeline.ended("generator", "paused", paused_s, version=step + 1)
        run.collector.advance(step + 1)
        if probes:
            check_parity(run, when=f"after the update of step {step + 1}")
    run.signal.note(step, metrics, judged)
    return metrics | clock.metrics(sum(group.num_generated_tokens for group in collected.generated))
