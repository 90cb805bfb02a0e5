"""Held-out accuracy, greedy and sampled: before, during and after training."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vlrl.config import Config
from vlrl.config.learning.policies import require_one_policy
from vlrl.errors import ConfigError
from vlrl.process.event_loop import call_page
from vlrl.rollout.groups import require_played, require_scored
from vlrl.run.players.heldout import Asking
from vlrl.run.players.rollouts import Rollouts
from vlrl.run.run import Run
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.heldout import add_heldout, start_heldout
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts
from vlrl.types import Group, Sample, Trajectory


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Mean of the first reward over the held-out samples; the sampled rollouts are kept to show.

    Attributes:
        accuracy_greedy: of the likeliest answers.
        accuracy_sampled: of answers generated at the training temperature.
        num_samples: how many were asked.
        greedy: the rollouts.
        sampled: the same.
        parts: the same of the samples that share a value of one of eval.group_by, by "KEY=VALUE".
    """

    accuracy_greedy: float
    accuracy_sampled: float
    num_samples: int
    greedy: list[Group]
    sampled: list[Group]
    parts: Mapping[str, Evaluation] = field(default_factory=dict)

    def metrics(self) -> dict[str, float]:
        """The metrics as logged."""
        return {
            "heldout/accuracy_greedy": self.accuracy_greedy,
            "heldout/accuracy_sampled": self.accuracy_sampled,
            "heldout/num_samples": self.num_samples,
            **{
                f"{name}/{part}": value
                for part, evaluation in self.parts.items()
                for name, value in evaluation.metrics().items()
            },
        }

    def summary(self) -> dict[str, Any]:
        """Summary as `vlrl eval` prints it; `parts` only if there are any."""
        whole = {
            "accuracy_greedy": self.accuracy_greedy,
            "accuracy_sampled": self.accuracy_sampled,
            "num_samples": self.num_samples,
        }
        parts = {name: part.summary() for name, part in self.parts.items()}
        return {**whole, "parts": parts} if parts else whole


async def evaluate(
    samples: Sequence[Sample], rollouts: Rollouts, reward: ComposedReward, config: Config, step: int = 0
) -> Evaluation:
    """Answer every sample once greedily and once at the training temperature.

    The sampled answers use the same seeds at every evaluation, so two evaluations differ by the weights
    alone.

    Args:
        samples: what is asked.
        rollouts: where it is answered and scored.
        reward: of which sources' first part is the accuracy.
        config: the whole config.
        step: whose reward weights the totals have.
    """
    counts = num_by_part(samples, config.eval.group_by)
    results: dict[bool, list[Group]] = {}
    for greedy in (True, False):
        answers = await rollouts.answer(samples, Asking("evaluate", group_size=1, greedy=greedy, step=step))
        groups = [group for of_sample in answers.of_samples for group in of_sample]
        played = [t for group in groups for t in group.trajectories]
        failures = [t.failure for t in played if t.failed]
        require_played(failures, len(played), config.episodes.max_failed_share)
        require_scored(answers.failures, len(groups), config.scoring.max_failed_share)
        results[greedy] = groups

    def of(part: str | None, num_samples: int, parts: Mapping[str, Evaluation]) -> Evaluation:
        greedy, sampled = (
            [
                g
                for g in results[each]
                if part is None or part in _parts(g.trajectories[0].sample, config.eval.group_by)
            ]
            for each in (True, False)
        )
        return Evaluation(
            accuracy(greedy, reward), accuracy(sampled, reward), num_samples, greedy, sampled, parts
        )

    return of(None, len(samples), {part: of(part, num, {}) for part, num in sorted(counts.items())})


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


def num_by_part(samples: Sequence[Sample], keys: Sequence[str]) -> Counter[str]:
    """How many samples have a value, by "KEY=VALUE" of their metadata.

    Raises:
        ConfigError: for a key that no sample has.
    """
    known = {name for sample in samples for name in sample.metadata}
    if unknown := [key for key in keys if key not in known]:
        raise ConfigError(
            f"eval.group_by: no held-out row has {unknown[0]!r} in its metadata; there is "
            f"{', '.join(sorted(known)) or 'nothing in it'}"
        )
    return Counter(part for sample in samples for part in _parts(sample, keys))


def _parts(sample: Sample, keys: Sequence[str]) -> list[str]:
    return [f"{key}={sample.metadata[key]}" for key in keys if key in sample.metadata]


def accuracy(groups: Sequence[Group], reward: ComposedReward) -> float:
    """Mean of each source's first reward; an answer that could not be scored does not count."""
    values = [accuracy_of(t, reward) for group in groups for t in group.trajectories]
    scored = [value for value in values if value is not None]
    return sum(scored) / len(scored) if scored else float("nan")


def accuracy_of(trajectory: Trajectory, reward: ComposedReward) -> float | None:
    """The value of its source's first reward; None if it could not be scored."""
    if (score := trajectory.score) is None:
        return None
    return score.parts.get(reward.first_part(trajectory.sample.source), score.total)


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
    """The first num_samples held-out samples, all if None; none without data.eval."""
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
        num_samples: rows that are asked, the first ones; None asks all.
        keep_as: some of the rollouts are kept as rollouts/NAME.jsonl.
        num_updates: of the weights so far; None is all of the run's, or none where it is kept as "before".
    """
    config, samples = run.config, heldout_samples(run, num_samples)
    if not samples:
        return {}
    with run.phases.measure("evaluate"):
        step = run.first_step if keep_as == "before" else config.num_steps
        done = step if num_updates is None else num_updates
        run.turns.to_engines()
        result = run.runner.run(evaluate(samples, run.rollouts, run.reward, config, step))
    run.console.note(
        f"held-out accuracy {when}: {result.accuracy_greedy:.3f} greedy, "
        f"{result.accuracy_sampled:.3f} sampled"
    )
    for how, groups in (("greedy", result.greedy), ("sampled", result.sampled)):
        answers = [
            (t.sample.id, accuracy_of(t, run.reward), t.score.total if t.score else None)
            for group in groups
            for t in group.trajectories
        ]
        add_heldout(config.run_dir, done, how, answers)
    if keep_as:
        shown = result.sampled[: config.logging.num_report_rollouts]
        records = rollout_records(shown, run.processor, phase=keep_as, step=step)
        write_rollouts(config.run_dir / "rollouts" / f"{keep_as}.jsonl", records, images_of(shown))
    published = {f"heldout/{name}": value for name, value in run.rollouts.take_published().items()}
    metrics = result.metrics() | published
    run.console.evaluated(done, metrics)
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
