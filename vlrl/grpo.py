"""GRPO on one page: sample → roll out → score → advantage → pack → step → sync.

    rows ─► samples ─► policy (vLLM) ─► trajectories ─► rewards ─► advantages ─► micro-batches
                          ▲                                                           │
                          └── weights, version s+1 ◄── shared memory ◄── trainer (ZeRO-3) step s

Synchronous, by default: the engine waits while the trainer steps and the other way round, so every token is
drawn under the weights it trains. With async_.mode=async `draw_groups` goes on all the time, at most
max_staleness updates behind; `vlrl.collector` has both ways. What DeepSeekMath's GRPO (arXiv 2402.03300) has
and this page leaves out by default: the KL term (algorithm.kl_coef, Eq. 3), off as in DAPO; process rewards.
What it has not: a bonus for entropy (algorithm.entropy_coef), off too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from vlrl.batch import Batch
from vlrl.buffer import Ticket
from vlrl.collector import Batch as Collected
from vlrl.collector import Round
from vlrl.config import Config
from vlrl.console import TrainConsole
from vlrl.credit import assign_credit
from vlrl.data import row_counts
from vlrl.evaluate import hold_out, hold_out_before, verdict
from vlrl.pack import pack
from vlrl.parity import check_parity, require_parity
from vlrl.recovery import run_to_end
from vlrl.rewards.judge.stats import take_judge_metrics
from vlrl.rollout import Drawn, require_played, require_scored, rollout_groups, score_groups
from vlrl.run import Clock, Run
from vlrl.schedule import learning_rate
from vlrl.stats import episode_stats, num_drawn_tokens, rollout_stats
from vlrl.step_result import mean_of_updates
from vlrl.types import Group


def train(
    config: Config | Mapping[str, Any], console: TrainConsole | None = None, *, resume: bool = False
) -> dict[str, object]:
    """Train by GRPO and return the run's summary, which is also written to summary.json.

    A trainer that dies is restarted from the last checkpoint, see `vlrl.recovery`. `config` may be a mapping,
    and have functions and classes where it has names; in a notebook it runs beside the notebook's event loop.

    Raises:
        VlrlError: with what is wrong, where, and the remedy.
        Interrupted: after a clean save, on Ctrl-C or SIGTERM.
    """
    return run_to_end(train_once, config, console, resume)


def train_once(config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
    """`train`, until it is done or something dies."""
    with Run(config, console, train=True, generate=True, resume=resume) as run:
        check_parity(run)
        before = hold_out_before(run)
        run.collect(partial(draw_groups, run), partial(require_drawn, config))
        console.phase("GRPO", config.num_steps)
        with run.phases.measure("GRPO"):
            for step in run.steps():
                metrics = grpo_step(run, step)
                if config.eval.every and (step + 1) % config.eval.every == 0 and step + 1 < config.num_steps:
                    metrics |= hold_out(run, f"after step {step + 1}", config.eval.during_samples)
                run.sinks.log(step, metrics)
                console.step(step, metrics)
        console.phase("finishing")
        run.runner.run(run.collector.close())
        after = hold_out(run, "after training", config.eval.num_samples, keep_as="after")
        run.export_model()
        run.signal.finish(config.run_dir)
        return run.write_summary(num_parameters=run.trainer.num_parameters, **verdict(config, before, after))


def grpo_step(run: Run, step: int) -> dict[str, float]:
    """One step of GRPO: a batch of drawn groups, learn from it, hand the new weights to the engine."""
    config, clock = run.config, Clock(run.timeline.recorder("trainer", step=step))
    with clock.measure("generate"):
        drawn = run.runner.run(run.collector.batch())
    clock.split("generate", drawn.seconds)
    run.samples.log(step, drawn.tickets)
    if drawn.failures:  # masked and counted (law 7); the first says what to mend
        failures = len(drawn.failures)
        run.console.note(f"step {step + 1}: {failures} completions could not be scored; {drawn.failures[0]}")
    judged = [*drawn.groups, *drawn.dropped]
    metrics = rollout_stats(judged, drawn.failures) | episode_stats(judged, drawn.counts)
    metrics |= {name: float(count) for name, count in drawn.rows.items()}
    metrics |= drawn.metrics | take_judge_metrics() | run.policy.take_metrics()
    with clock.measure("train"):
        lr, updates = learning_rate(config.optim, step, config.num_steps), []
        for index, batch in enumerate(each_aside(run, minibatches(drawn.groups, run, step))):
            update, difference, sample_id = run.aside(run.trainer.step, batch, "grpo", lr)
            updates.append(update)
            # Later ones are computed under newer weights than the tokens were drawn with.
            if index == 0 and difference is not None:
                metrics |= {"parity/max_abs_logprob_diff": difference}
                if config.parity.every_step:
                    require_parity(difference, sample_id, config, when=f"step {step + 1}")
        metrics |= mean_of_updates(updates)
        if metrics.get("optim/skipped_fraction"):
            run.console.note(f"step {step + 1}: a gradient was not finite, so its update was left out")
    with clock.measure("sync"):
        run.aside(run.trainer.write_weights)
        paused_s = run.aside(run.policy.load_weights, run.trainer.manifest, step + 1)
        run.timeline.ended("generator", "paused", paused_s, version=step + 1)
        run.collector.advance(step + 1)
        if config.weights.probe_every and (step + 1) % config.weights.probe_every == 0:
            check_parity(run, when=f"after the update of step {step + 1}")
    run.signal.note(step, metrics, judged)
    return metrics | clock.metrics(num_drawn_tokens(drawn.drawn))


async def draw_groups(run: Run, tickets: Sequence[Ticket[list[Group]]]) -> Round:
    """What tickets become: samples, rolled out, scored, with the advantage of each token."""
    config, clock = run.config, Clock()
    with clock.measure("wait"):
        prepared = run.stream.prepare([ticket.position for ticket in tickets])
        rows = await asyncio.gather(*map(asyncio.wrap_future, prepared))
    drawn = await rollout_groups(
        [row.sample for row in rows],
        run.setting,
        seed_paths=[
            (config.run.seed, t.position // config.rollout.prompts_per_step, t.position) for t in tickets
        ],
        stragglers=config.episodes.stragglers,
        branching=config.episodes.branching,
    )
    with clock.measure("reward"):
        failures = await score_groups(drawn.groups, run.reward.score_all, tickets[0].version)
        assign_credit(drawn.groups, config.algorithm, run.masks)
    return Round(drawn.of_samples, failures, drawn.counts, row_counts(rows), clock.seconds)


def require_drawn(config: Config, drawn: Collected) -> None:
    """Stop a run of which more episodes or scores fail than it puts up with."""
    require_played(Drawn([drawn.drawn], drawn.counts), config.episodes.max_failed_share)
    num_completions = sum(len(group.trajectories) for group in drawn.drawn)
    require_scored(drawn.failures, num_completions, config.scoring.max_failed_share)


def each_aside(run: Run, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches, made while groups are drawn."""
    while (batch := run.aside(next, batches, None)) is not None:
        yield batch


def minibatches(groups: Sequence[Group], run: Run, step: int) -> Iterator[Batch]:
    """Each optimizer step's share of the groups, packed."""
    config = run.config
    size = max(1, -(-len(groups) // config.algorithm.num_minibatches))  # some may have been left out
    batches = (
        pack(
            groups[start : start + size],
            run.processor.pixels,
            num_ranks=config.trainer.num_ranks,
            sequence_parallel=config.trainer.sequence_parallel,
            max_tokens=config.trainer.max_tokens_per_micro_batch,
            max_pixels=config.trainer.max_pixels_per_micro_batch,
            aggregation=config.algorithm.aggregation,
            max_completion_tokens=config.rollout.max_tokens,
            max_turns=config.episodes.max_turns,
            keep_zero_advantage=config.algorithm.kl_coef > 0 or config.algorithm.entropy_coef > 0,
            version=step,
            pictures_once=True,
        )
        for start in range(0, len(groups), size)
    )
    yield from run.trainer.with_proximal(batches) if config.algorithm.correction.recomputes else batches
