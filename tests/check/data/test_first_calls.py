"""Rewards are called on references before engines start: what cannot work, or pays nothing, is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_sample

from vlrl.check.rewards.first_calls import call_rewards_first
from vlrl.config.options import RewardConfig
from vlrl.errors import ScoringError
from vlrl.scoring.compose import ComposedReward
from vlrl.types import EnvTask, Sample

SAMPLES = [make_sample(id="a", answer="2"), make_sample(id="b", answer="3")]


class Spells:
    """What is asked of a processor."""

    def encode_target(self, text: str) -> Any:
        return np.arange(len(text))


Call = Callable[..., list[str]]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    def run(
        body: str,
        samples: list[Sample] = SAMPLES,
        signature: str = "completion, answer",
        group: bool = False,
        optional: bool = False,
    ) -> list[str]:
        file = tmp_path / f"mine_{len(list(tmp_path.iterdir()))}.py"
        declared = "from vlrl.rewards import reward\n\n@reward(group=True)\n" if group else ""
        file.write_text(f"{declared}def score({signature}):\n    {body}\n")
        told: list[str] = []
        config = RewardConfig(name=f"{file}:score")
        with ComposedReward([config], inline=True, optional=optional) as reward, asyncio.Runner() as runner:
            processor: Any = Spells()
            call_rewards_first(
                samples, reward, processor, runner, lambda e, text: told.append(f"{e}: {text}")
            )
        return told

    return run


@pytest.mark.parametrize(
    "body", ["return float(completion == answer)", "return float(f'<answer>{answer}</answer>' in completion)"]
)
def test_a_reward_that_pays_for_a_reference_in_any_form_is_fine(call: Call, body: str) -> None:
    assert call(body) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [("return completion.no_such_method()", "no_such_method"), ("return 'text'", "not a number")],
)
def test_one_that_always_fails_ends_the_run(call: Call, body: str, words: str) -> None:
    with pytest.raises(ScoringError, match=f"before any engine was started: reward 'score', .*{words}"):
        call(body)


def test_a_field_that_rows_have_not_does_too(call: Call) -> None:
    with pytest.raises(ScoringError, match="boxes"):
        call("return 1.0", signature="completion, answer, boxes")


def test_one_that_fails_on_some_completions_is_reported(call: Call) -> None:
    (told,) = call("return {'2': 1.0, '3': 1.0}[completion]")
    assert told.startswith("reward_failed_first: 10 of 12 first calls of rewards: reward 'score', sample 'a'")


def test_references_that_earn_nothing_are_reported(call: Call) -> None:
    (told,) = call("return 0.0")
    assert told.startswith("reference_not_rewarded: no reference scores more than an empty completion does")
    assert "for instance '2' of sample 'a'" in told
    assert call("return float(answer == completion == '2')") == [], "one sample that is paid for is enough"


def test_beside_a_teacher_references_need_not_earn_anything(call: Call) -> None:
    assert call("return 0.0", optional=True) == []


def test_a_reward_of_a_group_is_shown_a_samples_references_together(call: Call) -> None:
    body = "return [float(bool(c) and len(completions) > 1) for c in completions]"
    assert call(body, signature="completions, answers", group=True) == []


def test_what_nobody_knows_the_right_answer_of_is_not_tried(call: Call) -> None:
    played = make_sample(answer="2", env=EnvTask("visual/sokoban"))
    assert call("return 1 / 0", [played, make_sample()]) == []
