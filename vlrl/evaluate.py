"""Held-out accuracy, greedy and sampled: before, during and after training."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlrl.config import Config
from vlrl.config.learning.policies import require_one_policy
from vlrl.errors import ConfigError
from vlrl.evaluation.answers import How, heldout_rows
from vlrl.evaluation.asking import ask_each, ask_together
from vlrl.evaluation.endpoint import at_endpoint
from vlrl.evaluation.kept import KeptAnswers
from vlrl.evaluation.result import Evaluation, evaluation_of
from vlrl.foreign.runner import result_of
from vlrl.process.event_loop import call_page
from vlrl.processors.auto import open_processor
from vlrl.run.players.rollouts import Rollouts
from vlrl.run.run import Run
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.heldout import add_heldout, start_heldout
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts
from vlrl.tracking.selection import is_evaluated
from vlrl.types import Group, Sample


async def evaluate(
    samples: Sequence[Sample],
    rollouts: Rollouts,
    reward: ComposedReward,
    config: Config,
    step: int = 0,
    kept: KeptAnswers | None = None,
) -> Evaluation:
    """Answer every sample once greedily and eval.num_answers times at the training temperature.

    The sampled answers use the same seeds at every evaluation, so two evaluations differ by the weights
    alone.

    Args:
        samples: what is asked.
        rollouts: where it is answered and scored; it is given all samples at once.
        reward: of which sources' first part is the accuracy.
        config: the whole config.
        step: whose reward weights the totals have.
        kept: what is answered already, and where the rest is kept; then there are no rollouts to show.
    """
    rows = heldout_rows(samples, config.eval.group_by)
    groups: dict[How, list[Group]] = {}
    if kept is None:
        answers, groups = await ask_together(rows, rollouts, reward, config, step)
    else:
        answers = await ask_each(rows, rollouts, reward, config, step, kept)
    return evaluation_of(answers, rows, config, groups)


def evaluate_model(
    config: Config | Mapping[str, Any], console: TrainConsole | None = None, out: Path | None = None
) -> Evaluation:
    """`evaluate` the model of a config, or of its eval.endpoint, on its held-out rows, from Python.

    It may be called in a script, a thread or a notebook.

    Args:
        config: a config, or a mapping that is one; eval.num_samples bounds the rows of each set.
        console: where progress is shown; by default on stdout.
        out: folder in which each row's answers are kept when they are there; what is there already is not
            asked again.

    Raises:
        ConfigError: without held-out rows, for a mapping that is not a config, or a folder of another
            evaluation.
    """

    def page(checked: Config, shown: TrainConsole) -> Evaluation:
        if not checked.data.eval:
            raise ConfigError("data.eval is not set; name the held-out rows there")
        require_one_policy(checked, "vlrl eval")
        if checked.eval.endpoint is not None:
            with asyncio.Runner() as runner:
                return result_of(runner, _evaluate_at_endpoint(checked, shown, out))
        if out is not None:  # else the engine answers when all rows are done
            generator = checked.generator.model_copy(update={"mode": "continuous"})
            checked = checked.model_copy(update={"generator": generator})
        with Run(checked, shown, train=False, generate=True) as run:
            kept = None if out is None else KeptAnswers(out, checked, run.data.sources, run.processor)
            samples = heldout_samples(run, checked.eval.num_samples)
            shown.phase(f"answering {len(samples)} held-out samples")
            if kept is not None and kept.num_rows:
                shown.note(f"{kept.num_rows} of {2 * len(samples)} are there, greedy and sampled")
            run.open_rollouts()
            return run.runner.run(evaluate(samples, run.rollouts, run.reward, run.config, kept=kept))

    return call_page(page, config, console, lambda checked: TrainConsole(f"evaluate {checked.model.path}", 1))


async def _evaluate_at_endpoint(config: Config, console: TrainConsole, out: Path | None) -> Evaluation:
    console.phase("loading the processor")
    processor = open_processor(config)
    async with at_endpoint(config, processor, lambda event, text: console.note(text)) as opened:
        kept = None if out is None else KeptAnswers(out, config, opened.data.sources, processor)
        samples = await asyncio.to_thread(opened.data.heldout, config.eval.num_samples)
        console.phase(f"answering {len(samples)} held-out samples")
        return await evaluate(samples, opened.rollouts, opened.player.reward, config, kept=kept)


def hold_out_before(run: Run) -> dict[str, float]:
    """Evaluate the model as it was given; a resumed run takes the numbers of its first start."""
    kept = run.config.run_dir / "before.json"
    start_heldout(run.config.run_dir, run.first_step)
    if run.first_step and kept.is_file():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    if run.config.data.eval:
        run.console.phase("evaluating before training")
    before = hold_out(run, "before training", run.config.eval.num_samples, keep_as="before")
    kept.write_text(json.dumps(before), encoding="utf-8")
    return before


def hold_out_during(run: Run, step: int) -> dict[str, float]:
    """Held-out metrics after a step, where eval.every asks for them."""
    if not is_evaluated(run.config, step):
        return {}
    return hold_out(run, f"after step {step + 1}", run.config.eval.during_samples, num_updates=step + 1)


def heldout_samples(run: Run, num_samples: int | None) -> list[Sample]:
    """The first num_samples held-out samples of each set, all if None; none without data.eval."""
    known, samples = run.data.num_heldout_dropped, run.data.heldout(num_samples)
    if (dropped := run.data.num_heldout_dropped) > known:
        run.console.note(f"{dropped} held-out rows are too long or broken: left out")
    return samples


def hold_out(
    run: Run,
    when: str,
    num_samples: int | None,
    *,
    keep_as: str | None = None,
    num_updates: int | None = None,
) -> dict[str, float]:
    """Held-out metrics, empty without held-out rows; what each row earned goes to RUN/heldout.jsonl.

    Args:
        run: that is under way.
        when: for people, such as "after step 20".
        num_samples: rows of each set that are asked, the first ones; None asks all.
        keep_as: some of the rollouts are kept as rollouts/NAME.jsonl.
        num_updates: of the weights so far; None is all of the run's, or none where it is kept as "before".
    """
    config, samples = run.config, heldout_samples(run, num_samples)
    if not samples:
        return {}
    with run.phases.measure("evaluate"):
        step = run.first_step if keep_as == "before" else run.num_done
        updates = step if num_updates is None else num_updates
        run.turns.to_engines()
        result = run.runner.run(evaluate(samples, run.rollouts, run.reward, config, step))
    run.console.note(
        f"held-out accuracy {when}: {result.accuracy_greedy:.3f} greedy, "
        f"{result.accuracy_sampled:.3f} sampled"
    )
    add_heldout(config.run_dir, updates, [answer.line() for answer in result.answers])
    if keep_as:
        shown = result.sampled[: config.logging.num_report_rollouts]
        records = rollout_records(shown, run.processor, phase=keep_as, step=step)
        write_rollouts(config.run_dir / "rollouts" / f"{keep_as}.jsonl", records, images_of(shown))
    published = {f"heldout/{name}": value for name, value in run.rollouts.take_published().items()}
    metrics = result.metrics() | published
    run.console.callbacks.evaluated(updates, metrics)
    return metrics


def verdict(config: Config, before: dict[str, float], after: dict[str, float]) -> dict[str, object]:
    """The summary's accuracies, and whether the run reached what its config promised."""
    if not before or not after:
        return {}
    target, reached = config.eval.target_accuracy, after["heldout/accuracy_greedy"]
    return {
        "heldout_accuracy_before": before["heldout/accuracy_greedy"],
        "heldout_accuracy_after": reached,
        "heldout_accuracy_before_greedy": before["heldout/accuracy_greedy"],
        "heldout_accuracy_after_greedy": reached,
        "heldout_accuracy_before_sampled": before["heldout/accuracy_sampled"],
        "heldout_accuracy_after_sampled": after["heldout/accuracy_sampled"],
        "num_heldout": after["heldout/num_samples"],
        "target_accuracy": target,
        "target_reached": None if target is None else reached >= target,
    }
