"""Held-out accuracy, greedy and sampled: before, during and after training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.config import Config
from vlrl.config.learning.policies import require_one_policy
from vlrl.errors import ConfigError
from vlrl.evaluation.answers import HOWS, HeldoutAnswer, How, PartsOf, answers_of, numbered
from vlrl.evaluation.result import Evaluation, evaluation_of
from vlrl.process.event_loop import call_page
from vlrl.rollout.groups import require_played, require_scored
from vlrl.run.players.heldout import Asking
from vlrl.run.players.rollouts import Rollouts
from vlrl.run.run import Run
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.heldout import add_heldout, start_heldout
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts
from vlrl.types import Group, Sample

ROWS_PER_SET = 1_000_000_000
"""Where in the seeds the next set begins: they do not depend on how many rows of a set are asked."""


async def evaluate(
    samples: Sequence[Sample], rollouts: Rollouts, reward: ComposedReward, config: Config, step: int = 0
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
    """
    parts_of, rows = PartsOf(samples, config.eval.group_by), numbered(samples)
    positions = [place * ROWS_PER_SET + row for place, row in rows]
    found, groups = list[HeldoutAnswer](), dict[How, list[Group]]()
    for how in HOWS:
        asking = asking_of(how, config, step)
        answers = await rollouts.answer(samples, asking, positions)
        groups[how] = [group for of_sample in answers.of_samples for group in of_sample]
        require_answered(groups[how], answers.failures, config)
        for sample, (_, row), of_sample in zip(samples, rows, answers.of_samples, strict=True):
            found += answers_of(of_sample, how, row, reward, parts_of(sample))
    return evaluation_of(
        found,
        len(samples),
        parts_of.counts(),
        num_answers=config.eval.num_answers,
        threshold=config.data.pass_threshold,
        groups=(groups["greedy"], groups["sampled"]),
    )


def asking_of(how: How, config: Config, step: int) -> Asking:
    """How the rows of an evaluation are answered."""
    size = 1 if how == "greedy" else config.eval.num_answers
    return Asking("evaluate", group_size=size, greedy=how == "greedy", step=step)


def require_answered(groups: Sequence[Group], failures: Sequence[RewardFailure], config: Config) -> None:
    """Raise EnvError or ScoringError if more of an evaluation failed than the config allows."""
    played = [t for group in groups for t in group.trajectories]
    failed = [t.failure for t in played if t.failed]
    require_played(failed, len(played), config.episodes.max_failed_share)
    require_scored(failures, len(played), config.scoring.max_failed_share)


def evaluate_model(config: Config | Mapping[str, Any], console: TrainConsole | None = None) -> Evaluation:
    """`evaluate` the model of a config on its held-out rows, from Python: in a script, thread or notebook.

    Args:
        config: a config, or a mapping that is one; eval.num_samples bounds the rows.
        console: where progress is shown; by default on stdout.

    Raises:
        ConfigError: without held-out rows, or for a mapping that is not a config.
    """

    def page(checked: Config, shown: TrainConsole) -> Evaluation:
        if not checked.data.eval:
            raise ConfigError("data.eval is not set; name the held-out rows there")
        require_one_policy(checked, "vlrl eval")
        with Run(checked, shown, train=False, generate=True) as run:
            samples = heldout_samples(run, checked.eval.num_samples)
            shown.phase(f"answering {len(samples)} held-out samples")
            run.open_rollouts()
            return run.runner.run(evaluate(samples, run.rollouts, run.reward, run.config))

    return call_page(page, config, console, lambda checked: TrainConsole(f"evaluate {checked.model.path}", 1))


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
    """Held-out metrics after a step, where eval.every asks for them; after the last, training has ended."""
    config = run.config
    if not config.eval.every or (step + 1) % config.eval.every or step + 1 == config.num_steps:
        return {}
    return hold_out(run, f"after step {step + 1}", config.eval.during_samples, num_updates=step + 1)


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
        step = run.first_step if keep_as == "before" else config.num_steps
        run.turns.to_engines()
        result = run.runner.run(evaluate(samples, run.rollouts, run.reward, config, step))
    run.console.note(
        f"held-out accuracy {when}: {result.accuracy_greedy:.3f} greedy, "
        f"{result.accuracy_sampled:.3f} sampled"
    )
    updates = step if num_updates is None else num_updates
    add_heldout(config.run_dir, updates, [answer.line() for answer in result.answers])
    if keep_as:
        shown = result.sampled[: config.logging.num_report_rollouts]
        records = rollout_records(shown, run.processor, phase=keep_as, step=step)
        write_rollouts(config.run_dir / "rollouts" / f"{keep_as}.jsonl", records, images_of(shown))
    published = {f"heldout/{name}": value for name, value in run.rollouts.take_published().items()}
    return result.metrics() | published


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
