"""Group-level rewards by hand, and through the scoring pipeline: whole groups, whatever failed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from builders import make_sample, make_trajectory
from images import think

from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.errors import ConfigError
from vlrl.rewards.group import group_diversity, group_length, group_rank
from vlrl.rollout.groups import score_groups
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Group, Score, Trajectory

RIGHT: dict[str, Any] = {"accuracy": "answer_exact", "accuracy_options": {"part": "whole"}}


def diversity(*texts: str, **options: Any) -> list[float]:
    return group_diversity(list(texts), [texts[0]] * len(texts), part="whole", **options)


def test_diversity_by_hand() -> None:
    assert diversity("ab", "ab", "ab") == [0, 0, 0]
    assert diversity("ab", "cd") == [1, 1]
    assert diversity("ab", "ab", "cd") == [0.5, 0.5, 1]
    assert diversity("abcd", "abcx") == [0.25, 0.25]
    assert diversity("ab") == [0]
    assert diversity("ab", "", "x" * 30_000, "cd") == [1, 0, 0, 1]  # what does not count makes none diverse
    assert group_diversity([think("a"), "b", think("c")], ["a"] * 3) == [1, 0, 1]


def test_only_right_answers_are_diverse_if_an_accuracy_is_given() -> None:
    texts = [think("8") + "x", "<think>by adding</think><answer>8</answer>", think("8"), think("zebra")]
    values = group_diversity(texts, ["8"] * 4, part="whole", accuracy="answer_exact")
    assert values[0] == values[3] == 0 and values[1] == values[2] > 0
    alone = group_diversity(texts[2:], ["8"] * 2, part="whole", accuracy="answer_exact")
    assert alone == [0, 0]


def test_length_as_kimi_has_it() -> None:
    texts, answers = ["8", "8", "9", "9", "8"], ["8"] * 5
    values = group_length(texts, answers, num_tokens=[10, 30, 10, 30, 20], **RIGHT)
    assert values == [0.5, -0.5, 0, -0.5, 0]
    assert group_length(texts, answers, num_tokens=[7] * 5, **RIGHT) == [0] * 5
    assert group_length(["8"], ["8"], num_tokens=[7], **RIGHT) == [0]


def test_rank_by_hand() -> None:
    options: dict[str, Any] = {"measure": "numeric_closeness", "measure_options": {"part": "whole"}}
    assert group_rank(["8", "7", "1", "1"], [8] * 4, **options) == [1, 2 / 3, 1 / 6, 1 / 6]
    assert group_rank(["8", "8"], [8] * 2, **options) == [0.5, 0.5]
    assert group_rank(["8"], [8], **options) == [0]


@pytest.mark.parametrize("name", ["judge", "group_rank"])
def test_what_is_no_plain_function_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="group_rank"):
        group_rank(["8"], [8], measure=name)


# Through the pipeline.

COUNTS = """
from vlrl.rewards import reward

calls = 0

@reward(group=True)
def size(completions, answers, level=None):
    assert len(completions) == len(answers)
    return [len(completions)] * len(completions)

@reward(group=True)
def joined(completions):
    return [float("".join(completions))] * len(completions)

@reward(group=True)
async def waits(completions):
    return [len(completions)] * len(completions)

@reward(group=True)
def flaky(completions):
    global calls
    calls += 1
    bad = float("nan") if calls == 1 else 7.0
    return [float(calls), bad, *[float(calls)] * (len(completions) - 2)]
"""


def episode(text: str, sample_id: str = "s", outcome: Any = "ok", index: int = 0) -> Trajectory:
    found = make_trajectory(make_sample(id=sample_id), [1], reward=None, completion=text, index=index)
    found.outcome = outcome
    return found


def scored(
    name: str, *groups: list[Trajectory], workers: int = 2
) -> tuple[list[list[float | None]], list[RewardFailure]]:
    made = [Group(group) for group in groups]
    with ComposedReward([RewardConfig(name=name)], scoring=ScoringConfig(num_workers=workers)) as reward:
        failures = asyncio.run(score_groups(made, reward.score_all))
    return [[t.score.total if t.score else None for t in g.trajectories] for g in made], failures


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "of_groups.py"
    path.write_text(COUNTS)
    return path


@pytest.mark.parametrize("name", ["size", "waits"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_whole_group_is_one_call_even_if_a_prompt_stands_twice_in_a_step(
    file: Path, name: str, workers: int
) -> None:
    twice = [[episode("1", index=i) for i in range(3)], [episode("1", index=i) for i in range(100)]]
    other = [episode("1", "t")]
    values, failures = scored(f"{file}:{name}", *twice, other, workers=workers)
    assert values == [[3] * 3, [100] * 100, [1]] and not failures


def test_members_whose_episode_failed_are_not_seen(file: Path) -> None:
    group = [episode("1"), episode("2", outcome="env_error"), episode("3")]
    values, failures = scored(f"{file}:joined", group)
    assert values == [[13, None, 13]] and not failures


def test_a_group_that_fails_is_tried_again_whole_and_alone_to_blame(file: Path) -> None:
    values, failures = scored(f"{file}:joined", [episode("1"), episode("x")], [episode("2"), episode("3")])
    assert values == [[None, None], [23, 23]]
    assert len(failures) == 2 and all("x" in failure.reason for failure in failures)


def test_a_member_without_a_value_is_tried_again_with_its_group(file: Path) -> None:
    values, failures = scored(f"{file}:flaky", [episode(str(i)) for i in range(4)], workers=1)
    assert values == [[1, 7, 1, 1]] and not failures  # the others keep what they had


def test_built_in_group_rewards_in_a_run() -> None:
    group = [episode(think("ab")), episode(think("cd")), episode(think("ab"))]
    values, failures = scored("group_diversity", group)
    assert values == [[0.5, 1, 0.5]] and not failures


def test_without_groups_everybody_is_alone(file: Path) -> None:
    with ComposedReward([RewardConfig(name=f"{file}:size")]) as reward:
        found = asyncio.run(reward.score_all([episode("1"), episode("2")]))
    assert [f.total for f in found if isinstance(f, Score)] == [1, 1]
