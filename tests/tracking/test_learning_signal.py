"""A run that learns nothing says so, with a completion beside its reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_sample, make_trajectory

from vlrl.algorithm.credit import group_with_advantages
from vlrl.config.options import LoggingConfig
from vlrl.tracking.group_numbers import numbers_of
from vlrl.tracking.learning_signal import LearningSignal, is_silent
from vlrl.tracking.sinks import MetricSinks
from vlrl.types import Group

SILENT = {"reward/zero_variance_groups": 1.0, "reward/mean": 0.0}
LOUD = {"reward/zero_variance_groups": 0.75, "reward/mean": 0.2, "optim/grad_norm": 0.5}


def make_group(
    reward: float | None = 0.0, completion: str = "<answer>2</answer>", answer: Any = "2"
) -> Group:
    sample = make_sample(id="cats", answer=answer)
    trajectories = [
        make_trajectory(sample, [5], index=i, reward=reward, completion=completion) for i in (0, 1)
    ]
    return group_with_advantages(trajectories, [0.0, 0.0])


def texts(steps: list[dict[str, float]], group: Group) -> list[str]:
    told: list[str] = []
    signal = LearningSignal(lambda event, text: told.append(text))
    for step, metrics in enumerate(steps):
        signal.note(step, metrics, numbers_of([group]))
    return told


@pytest.mark.parametrize(
    ("metrics", "silent"),
    [
        (SILENT, True),
        (LOUD, False),
        (LOUD | {"optim/grad_norm": 0.0}, True),
        (SILENT | {"optim/grad_norm": 0.1}, True),  # of the KL term alone
        (SILENT | {"distillation/reverse_kl": 0.3, "optim/grad_norm": 0.1}, False),  # of a teacher
        ({"sft/loss": 1.0}, False),
        (SILENT | {"critic/loss": 0.1, "reward/std": 0.4}, False),  # groups of one, or a critic's warm-up
        (LOUD | {"critic/loss": 0.1, "reward/std": 0.0}, True),
    ],
)
def test_what_a_silent_step_is(metrics: dict[str, float], silent: bool) -> None:
    assert is_silent(metrics) == silent


def test_ten_silent_steps_in_a_row_are_reported_with_an_example() -> None:
    assert texts([SILENT] * 9 + [LOUD] + [SILENT] * 9, make_group()) == []
    (told,) = texts([LOUD] * 3 + [SILENT] * 12, make_group())
    assert told.startswith(
        "nothing to learn from in the last 10 steps, to step 13: all completions of a prompt"
    )
    assert (
        "sample 'cats', whose reference is '2', was answered '<answer>2</answer>', which scored 0: if that "
        "is right, the reward does not see it (`vlrl reward test`"
    ) in told


def test_then_whenever_their_number_has_doubled() -> None:
    told = texts([SILENT] * 50, make_group())
    assert [text.split(" steps")[0].split()[-1] for text in told] == ["10", "20", "40"]


def test_rows_that_are_too_easy_are_told_from_those_too_hard() -> None:
    (told,) = texts([SILENT | {"reward/mean": 1.0}] * 10, make_group(1.0))
    assert "too easy" in told and "mean reward 1)" in told


def test_long_completions_are_shortened_and_missing_ones_said() -> None:
    (told,) = texts([SILENT] * 10, make_group(completion="x" * 5000))
    assert len(told) < 1500
    (told,) = texts([SILENT] * 10, make_group(reward=None))
    assert told.endswith("No completion could be scored at all")


@pytest.mark.parametrize(("steps", "num_told"), [([SILENT, LOUD], 0), ([], 0), ([SILENT, SILENT], 1)])
def test_a_run_without_any_signal_ends_with_a_verdict(
    tmp_path: Path, steps: list[dict[str, float]], num_told: int
) -> None:
    with MetricSinks(tmp_path, LoggingConfig(tensorboard=False)) as sinks:
        for step, metrics in enumerate(steps):
            sinks.log(step, metrics)
            sinks.log(step, {"heldout/accuracy_greedy": 0.5})
    told: list[str] = []
    LearningSignal(lambda event, text: told.append(f"{event}: {text}")).finish(tmp_path)
    assert len(told) == num_told
    assert all("none of the run's 2 steps had anything to learn from" in text for text in told)
