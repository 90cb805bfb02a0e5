"""A warning for runs in which no step has a learning signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vlrl.tracking.group_numbers import GroupNumbers
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

SILENT_STEPS = 10
"""Steps in a row without a signal after which a run says so; then again whenever their number has doubled."""

_EVEN = "reward/zero_variance_groups"
_TAUGHT = "distillation/reverse_kl"
"""A step that has it had a teacher."""
_REPLAYED = "replay/num_groups"
_CRITIC = "critic/loss"
"""A step that has it had a critic, which compares rewards of all groups."""


def is_silent(metrics: Mapping[str, float | None]) -> bool:
    """True for a step of GRPO that taught nothing.

    All groups were scored alike within themselves, so every advantage is 0 unless a teacher or earlier groups
    gave some; or the gradient was 0. With a critic all completions of the step must have been scored alike.
    """
    if _CRITIC in metrics:
        return metrics.get("reward/std") == 0.0
    even = metrics.get(_EVEN) == 1.0 and _TAUGHT not in metrics and not metrics.get(_REPLAYED)
    return even or metrics.get("optim/grad_norm") == 0.0


class LearningSignal:
    """Watches the steps of a run."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        """`tell` is called with an event's name and a text."""
        self._tell, self._num_silent, self._next = tell, 0, SILENT_STEPS

    def note(self, step: int, metrics: Mapping[str, float], groups: Sequence[GroupNumbers]) -> None:
        """Look at a step.

        Args:
            step: its number, from 0.
            metrics: of it, see `is_silent`.
            groups: that it generated and scored, for an example.
        """
        if not is_silent(metrics):
            self._num_silent, self._next = 0, SILENT_STEPS
            return
        self._num_silent += 1
        if self._num_silent == self._next:
            self._next *= 2
            mean = metrics.get("reward/mean", float("nan"))
            text = (
                f"nothing to learn from in the last {self._num_silent} steps, to step {step + 1}: all "
                f"completions of a prompt were scored alike (mean reward {mean:g}), so every advantage is 0. "
            )
            self._tell("no_learning_signal", text + _example(groups))

    def finish(self, run_dir: Path) -> None:
        """Warn if no step of the run, resumed ones included, had a learning signal."""
        steps = [step for step in read_metrics(run_dir / METRICS_FILE) if _EVEN in step]
        if steps and all(map(is_silent, steps)):
            self._tell(
                "nothing_learnt",
                f"none of the run's {len(steps)} steps had anything to learn from: the model is as before. "
                f"Try the reward on its completions: vlrl reward score REWARD {run_dir}/rollouts/after.jsonl",
            )


def _example(groups: Sequence[GroupNumbers]) -> str:
    one = next((group.example for group in groups if group.example is not None), None)
    if one is None:
        return "No completion could be scored at all"
    totals = [t.total for group in groups for t in group.members if t.total is not None]
    remedy = (
        "if that is right, the reward does not see it (`vlrl reward test` tries its forms); if it is wrong, "
        "the rows are too hard for this model, or the prompt does not say what form the answer has"
        if one.total <= min(0.0, *totals)
        else "if that is right too, the rows are too easy for this model: give harder ones"
    )
    return (
        f"For instance sample {one.sample_id!r}, whose reference is {one.reference}, was answered "
        f"{one.completion}, which scored {one.total:g}: {remedy}"
    )
