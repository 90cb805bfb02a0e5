"""Held-out accuracy, greedy and sampled: before, during and after training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from vlrl.config import Config
from vlrl.records import rollout_records, write_rollouts
from vlrl.rewards.judge.stats import take_judge_metrics
from vlrl.rewards.scoring.compose import ComposedReward
from vlrl.rollout import require_played, require_scored, rollout_groups, score_groups
from vlrl.run import Run
from vlrl.setting import Setting
from vlrl.types import Group, Sample


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Mean of the first reward over the held-out samples; the sampled rollouts are kept to show."""

    accuracy_greedy: float
    accuracy_sampled: float
    num_samples: int
    greedy: list[Group]
    sampled: list[Group]

    def metrics(self) -> dict[str, float]:
        """As logged."""
        return {
            "heldout/accuracy_greedy": self.accuracy_greedy,
            "heldout/accuracy_sampled": self.accuracy_sampled,
            "heldout/num_samples": self.num_samples,
        }


async def evaluate(
    samples: Sequence[Sample], setting: Setting, reward: ComposedReward, step: int = 0
) -> Evaluation:
    """Answer every sample once greedily and once at the training temperature.

    The sampled answers use the same seeds at every evaluation, so two evaluations differ by the weights
    alone. `step` is whose reward weights the totals have.
    """
    config = setting.config
    results: dict[bool, list[Group]] = {}
    for greedy in (True, False):
        drawn = await rollout_groups(
            samples, setting, seed_path=(config.run.seed, "evaluate"), group_size=1, greedy=greedy
        )
        require_played(drawn, config.episodes.max_failed_share)
        groups = drawn.groups
        failures = await score_groups(groups, reward.score_all, step)
        require_scored(failures, len(groups), config.scoring.max_failed_share)
        results[greedy] = groups
    return Evaluation(
        accuracy_greedy=accuracy(results[True], reward),
        accuracy_sampled=accuracy(results[False], reward),
        num_samples=len(samples),
        greedy=results[True],
        sampled=results[False],
    )


def accuracy(groups: Sequence[Group], reward: ComposedReward) -> float:
    """Mean of each source's first reward; an answer that could not be scored does not count."""
    scored = [
        (t.score, reward.first_part(t.sample.source)) for g in groups for t in g.trajectories if t.score
    ]
    values = [score.parts.get(name, score.total) for score, name in scored]
    return sum(values) / len(values) if values else float("nan")


def hold_out_before(run: Run) -> dict[str, float]:
    """Evaluate the model as it was given; a resumed run takes the numbers of its first start."""
    kept = run.config.run_dir / "before.json"
    if run.first_step and kept.is_file():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    if run.config.data.eval:
        run.console.phase("evaluating before training")
    before = hold_out(run, "before training", run.config.eval.num_samples, keep_as="before")
    kept.write_text(json.dumps(before), encoding="utf-8")
    return before


def hold_out(run: Run, when: str, num_samples: int | None, keep_as: str | None = None) -> dict[str, float]:
    """Held-out metrics, empty without held-out rows; some rollouts are kept as rollouts/NAME.jsonl."""
    config, samples = run.config, run.heldout(num_samples)
    if not samples:
        return {}
    with run.phases.measure("evaluate"):
        step = run.first_step if keep_as == "before" else config.num_steps
        result = run.runner.run(evaluate(samples, run.setting, run.reward, step))
    run.console.note(
        f"held-out accuracy {when}: {result.accuracy_greedy:.3f} greedy, "
        f"{result.accuracy_sampled:.3f} sampled"
    )
    if keep_as:
        shown = result.sampled[: config.logging.num_report_rollouts]
        records = rollout_records(shown, run.processor, phase=keep_as, step=step)
        media = [m for g in shown for t in g.trajectories for m in t.media]
        write_rollouts(config.run_dir / "rollouts" / f"{keep_as}.jsonl", records, media)
    judges = {f"heldout/{name}": value for name, value in take_judge_metrics().items()}
    return result.metrics() | judges


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
