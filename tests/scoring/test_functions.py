"""What a reward's author may write: plain functions, @reward, sync and async, and what counts as a score."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_sample, make_trajectory

from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.errors import ConfigError
from vlrl.rewards import Scored, reward
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.scoring.functions import as_value, find_reward
from vlrl.types import Score, Trajectory

PLUG_IN = """
import asyncio, threading, time
from vlrl.rewards import Scored, reward

def one(completion):
    return float(len(completion))

def swapped(answer, completion):
    return float(completion.startswith(answer))

def keyword_only(*, answer, completion):
    return float(completion.startswith(answer))

def no_answer(completion, boxes):
    return float(len(boxes))

def by_context(text, prompt, num_tokens, step, turns, completion_ids):
    assert len(turns) == 1 and completion_ids == [7, 8, 9] and prompt[0]["role"] == "user"
    return {"num_tokens": num_tokens, "step": step}

def tolerant(completion, tolerance=0.25):
    return tolerance

def nothing():
    return 1.0

def notes(completion, answer):
    return Scored(0.5, {"seen": 3})

def abstains(completion, answer):
    return Scored(None)

@reward(name="fine", range=(0, 1))
def ranged(completion, answer):
    return float(completion)

@reward(higher_is_better=False)
def errors(completion, answer):
    return float(completion)

@reward
def bare(completion, answer):
    return 1.0

@reward(batched=True, batch_size=3)
async def judge(completions, answers, prompt):
    await asyncio.sleep(0.001)
    assert len(prompt) == len(completions) == len(answers) <= 3
    return [float(c) for c in completions]

running = []

@reward(gpu=True)
def big(completion, answer):
    if completion == "hang":
        time.sleep(3)
    running.append(1)
    assert len(running) == 1 and threading.current_thread() is not threading.main_thread()
    time.sleep(0.005)
    running.pop()
    return float(completion)

async def waits(completion, answer):
    await asyncio.sleep(60)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PLUG_IN)
    return path


def trajectories(*texts: str, answer: Any = "8", **metadata: Any) -> list[Trajectory]:
    sample = make_sample(answer=answer, messages=({"role": "user", "content": "?"},), metadata=metadata)
    return [make_trajectory(sample, [7, 8, 9], completion=text) for text in texts]


def score(
    name: str, *texts: str, step: int = 0, options: dict[str, Any] | None = None, **metadata: Any
) -> list[Score | RewardFailure]:
    config = RewardConfig(name=name, options=options or {}, weight=-1.0 if name.endswith("errors") else 1.0)
    scoring = ScoringConfig(num_workers=1, async_timeout_s=1.0)
    with ComposedReward([config], scoring=scoring) as composed:
        return asyncio.run(composed.score_all(trajectories(*texts, **metadata), step))


def only(results: list[Score | RewardFailure]) -> Score:
    (result,) = results
    assert isinstance(result, Score), result
    return result


@pytest.mark.parametrize(
    ("name", "total"),
    [("one", 3.0), ("swapped", 1.0), ("keyword_only", 1.0), ("tolerant", 0.25), ("bare", 1.0)],
)
def test_completion_and_answer_are_given_by_name_or_by_place(file: Path, name: str, total: float) -> None:
    assert only(score(f"{file}:{name}", "8xy")).total == total


def test_the_second_place_is_the_answer_whatever_it_is_called(file: Path) -> None:
    assert only(score(f"{file}:no_answer", "x", answer=[1, 2, 3])).total == 3.0


def test_the_context_is_given_by_name(file: Path) -> None:
    assert only(score(f"{file}:by_context", "x", step=5)).parts == {"num_tokens": 3.0, "step": 5.0}


def test_options_and_metadata_fill_parameters_by_name(file: Path) -> None:
    assert only(score(f"{file}:tolerant", "x", tolerance=0.5)).total == 0.5
    assert only(score(f"{file}:tolerant", "x", tolerance=0.5, options={"tolerance": 2})).total == 2.0


def test_a_function_that_takes_no_completion_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing' takes no completion"):
        find_reward(f"{file}:nothing")
    with pytest.raises(ConfigError, match=r"running' is a list, not a function"):
        find_reward(f"{file}:running")


def test_notes_are_logged_but_not_summed_and_an_abstention_is_neither(file: Path) -> None:
    assert only(score(f"{file}:notes", "x")) == Score(0.5, {"notes": 0.5, "seen": 3.0})
    assert only(score(f"{file}:abstains", "x")) == Score(0.0, {})


def test_a_declared_name_and_range_hold(file: Path) -> None:
    assert only(score(f"{file}:ranged", "1.0")).parts == {"fine": 1.0}
    (failed,) = score(f"{file}:ranged", "1.5")
    assert "fine=1.5 is outside its declared range [0, 1]" in str(failed)


def test_a_reward_of_which_less_is_better_needs_a_negative_weight(file: Path) -> None:
    assert only(score(f"{file}:errors", "0.5")).total == -0.5
    for weight in (1.0, [(0, -1.0), (5, 0.5)]):
        with pytest.raises(ConfigError, match="lower is better"):
            ComposedReward([RewardConfig(name=f"{file}:errors", weight=weight)])


def test_groups_of_a_stream_are_scored_at_the_same_time(file: Path) -> None:
    """The smaller one comes while the larger one is being scored."""

    async def both(composed: ComposedReward) -> list[list[Score | RewardFailure]]:
        large, small = trajectories("a", "ab", "abc", "abcd", "abcde"), trajectories("abcdef")
        return await asyncio.gather(composed.score_all(large), composed.score_all(small))

    with ComposedReward([RewardConfig(name=f"{file}:one")], scoring=ScoringConfig(num_workers=2)) as composed:
        of_large, of_small = asyncio.run(both(composed))
    assert [only([found]).total for found in (*of_large, *of_small)] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_an_async_batch_runs_in_the_driver_in_order(file: Path) -> None:
    results = score(f"{file}:judge", *map(str, range(8)))
    assert [r.total for r in results if isinstance(r, Score)] == [float(i) for i in range(8)]
    mixed = score(f"{file}:judge", "1", "no number", "3")
    assert [r.total if isinstance(r, Score) else None for r in mixed] == [1.0, None, 3.0]


def test_a_gpu_reward_runs_in_a_thread_of_the_driver_one_call_at_a_time(file: Path) -> None:
    assert [r.total for r in score(f"{file}:big", "1", "2", "3") if isinstance(r, Score)] == [1.0, 2.0, 3.0]
    (failed,) = score(f"{file}:big", "hang")
    assert str(failed) == "reward 'big', sample 's': took longer than 1 s"


def test_an_async_reward_has_a_time_limit(file: Path) -> None:
    (failed,) = score(f"{file}:waits", "x")
    assert str(failed) == "reward 'waits', sample 's': took longer than 1 s"


class Torchlike:
    """A scalar as torch and numpy have them."""

    ndim = 0

    def item(self) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (1, 1.0), (True, 1.0), (0.25, 0.25), (np.float32(0.5), 0.5), (np.bool_(True), 1.0),
        (np.array(2), 2.0), (Torchlike(), 0.5), ({"a": 1, "b": 2.5}, 3.5), (Scored(2, {"x": 9}), 2.0),
    ],
)  # fmt: skip
def test_numbers_of_every_library_are_scores(returned: Any, value: float) -> None:
    assert as_value(returned, "r")[0] == value


@pytest.mark.parametrize(
    "returned",
    [
        None, "1", [1], (), {}, {"a": None}, float("nan"), -math.inf, 10**400, np.array([1.0]), 1j, object(),
        {"a": 1e308, "b": 1e308}, Scored(float("nan")), Scored(1.0, {"x": float("inf")}), np.float32("nan"),
    ],
)  # fmt: skip
def test_everything_else_is_none(returned: Any) -> None:
    with pytest.raises(ValueError, match=r"not a number|nan|inf|too large for a float|no parts"):
        as_value(returned, "r")


@pytest.mark.parametrize("options", [{"range": (1, 0)}, {"range": (1, 1)}, {"batch_size": 0}])
def test_a_declaration_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="@reward: "):
        reward(**options)


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    def mine(completion: str, answer: str) -> float:
        return 1.0

    decorated: Callable[..., float] = reward(range=(0, 1))(mine)
    assert decorated is mine
    assert decorated("a", "b") == 1.0
