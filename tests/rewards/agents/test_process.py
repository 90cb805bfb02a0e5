"""Process rewards by hand, and how what a turn earned reaches its tokens."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_generation, make_sample

from vlrl.algorithm.advantages.turns import turn_rewards
from vlrl.algorithm.credit import assign_credit
from vlrl.config import parse_config
from vlrl.config.options import RewardConfig
from vlrl.errors import ConfigError
from vlrl.rewards.agents.process import step_process, turn_process
from vlrl.rollout.session import Session
from vlrl.scoring.author import Scored
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Group, Score, Trajectory, Turn

WHOLE: dict[str, Any] = {"measure": "answer_exact", "measure_options": {"part": "whole"}}


def turns(*texts: str) -> list[Turn]:
    return [Turn((0, 1), (1, 2), text=text) for text in texts]


def by_turn(answer: Any, *texts: str, **options: Any) -> list[float]:
    found = turn_process("", answer, turns=turns(*texts), **{**WHOLE, **options})
    assert isinstance(found, Scored) and found.value == pytest.approx(sum(found.turns))
    return list(found.turns)


def test_turns_by_hand() -> None:
    assert by_turn("up", "up", "down") == [0.5, 0]
    assert by_turn("up", "up", "up", mean=False) == [1, 1]
    each: dict[str, Any] = {"references": "each"}
    assert by_turn(["up", "down"], "up", "down", **each) == [0.5, 0.5]
    assert by_turn(["up", "down", "left", "up"], "up", **each) == [0.25]  # stopping early does not pay
    assert by_turn(["up"], "up", "up", "up", "up", **each) == [0.25, 0, 0, 0]  # nor does going on
    assert by_turn("up") == []


def test_unusable_samples_and_wrong_options() -> None:
    for answer in ("up", [], None, 7):
        with pytest.raises(ValueError, match="list"):
            by_turn(answer, "up", references="each")
    with pytest.raises(ConfigError, match="references"):
        by_turn("up", "up", references="all")
    with pytest.raises(ConfigError, match="plain function"):
        by_turn("up", "up", measure="judge", measure_options={"endpoint": {}})


def steps(text: str, **options: Any) -> float:
    completion = f"<think>{text}</think><answer>x</answer>"
    return step_process(
        completion, 8, **{"measure": "numeric_closeness", "measure_options": {"part": "whole"}, **options}
    )


@pytest.mark.parametrize(
    ("aggregate", "value"), [("min", 0.5), ("mean", 0.75), ("product", 0.375), ("last", 0.5)]
)
def test_steps_by_hand(aggregate: Any, value: float) -> None:
    assert steps("8\n\n 6\n\n\n\n8\n\n4", aggregate=aggregate) == pytest.approx(
        {"min": 0.5, "mean": 3.25 / 4, "product": 0.375, "last": 0.5}[aggregate]
    )
    assert steps("8 | 4", separator="|", aggregate=aggregate) == pytest.approx(
        {"min": 0.5, "mean": 0.75, "product": 0.5, "last": 0.5}[aggregate]
    )


def test_hostile_thoughts_score_nothing() -> None:
    for text in ("", " \n\n ", "8\n\n" * 300, "8" * 30_000, "8\n\n[", "<think>8</think>"):
        assert steps(text) == 0, text[:20]
    assert step_process("8", 8, measure="numeric", part="think") == 0
    assert step_process("8", 8, part="whole", measure="numeric", measure_options={"part": "whole"}) == 1
    with pytest.raises(ValueError, match="sample"):
        step_process("", None, measure="numeric")
    for wrong in ({"separator": ""}, {"aggregate": "max"}, {"part": "answer"}):
        with pytest.raises(ConfigError, match="step_process"):
            steps("8", **wrong)


# Through the pipeline, to the tokens.


def episode(*texts: str, env: tuple[float, ...] = (), index: int = 0) -> Trajectory:
    session = Session(make_sample([1], answer="up", id="s"), index)
    for number in range(len(texts)):
        session.append_action(make_generation([65, 66]))
        session.grade(env[number] if env else 0.0, invalid=False)
    found = session.trajectory(texts[-1], "ok", 0.0)
    told = iter(texts)
    ledgers = tuple(
        replace(ledger, turns=tuple(replace(turn, text=next(told)) for turn in ledger.turns))
        for ledger in found.ledgers
    )
    return replace(found, ledgers=ledgers)


def scored(trajectory: Trajectory, *rewards: dict[str, Any]) -> Trajectory:
    with ComposedReward([RewardConfig(**reward) for reward in rewards], inline=True) as composed:
        trajectory.score = asyncio.run(composed.score(trajectory))
    return trajectory


PROCESS = {"name": "turn_process", "options": WHOLE}


def test_turns_reach_the_score_with_weight_clip_and_gate() -> None:
    up_down = ("up", "down")
    assert scored(episode(*up_down), {**PROCESS, "weight": 2.0}).score == Score(
        1.0, {"turn_process": 0.5, "turn_process/num_turns": 2.0}, (1.0, 0.0)
    )
    clipped = scored(episode("up", "up"), {**PROCESS, "clip": (0, 0.5)}).score
    assert clipped is not None and clipped.turns == (0.25, 0.25) and clipped.total == 0.5
    gate = {"name": "answer_exact", "gate": True, "weight": 0.5}  # the last text is in no form: closed
    closed = scored(episode(*up_down), PROCESS, gate).score
    assert closed is not None and closed.turns == (0.0, 0.0) and closed.total == 0
    both = scored(episode(*up_down), PROCESS, {**PROCESS, "weight": 3}).score
    assert both is not None and both.turns == (2.0, 0.0)


def test_a_turn_is_paid_for_its_own_value_and_the_rest_is_on_the_last() -> None:
    one = scored(episode("up", "down", env=(0.25, 1.0)), PROCESS, {"name": "episode_return"})
    assert turn_rewards(one).tolist() == [0.75, 1.0]
    only = scored(episode("down", "up"), PROCESS, {"name": "answer_exact", "options": {"part": "whole"}})
    assert turn_rewards(only).tolist() == [0.0, 1.5]


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([{"name": "success"}], [0.0, 0.0]),  # the environment's numbers are not asked for
        ([{"name": "success"}, PROCESS], [0.5, 0.5]),
        ([{"name": "episode_return"}], [0.25, 1.0]),
        ([{"name": "episode_return", "weight": 0.5}], [0.125, 0.5]),
        ([{"name": "episode_return", "weight": 0.0}], [0.0, 0.0]),
        ([{"name": "episode_return", "clip": (0, 1)}], [0.2, 0.8]),
        ([{"name": "episode_return", "weight": -2.0}, PROCESS], [0.0, -1.5]),
        ([{"name": "episode_return"}, {"name": "answer_exact", "gate": True}], [0.0, 0.0]),
    ],
)
def test_the_environment_s_rewards_are_paid_to_turns_where_rewards_name_them(
    rewards: list[dict[str, Any]], expected: list[float]
) -> None:
    one = scored(episode("up", "up", env=(0.25, 1.0)), *rewards)
    assert turn_rewards(one).tolist() == pytest.approx(expected)
    assert one.score is not None and one.score.total == pytest.approx(sum(expected))


def test_credit_tells_turns_apart() -> None:
    tree = {
        "model": {"path": "x"},
        "data": {"train": {"name": "digit_sum"}},
        "rewards": [{"name": "numeric"}],
    }
    options = parse_config({**tree, "algorithm": {"credit": "turn_groups", "discount": 0.0}}).algorithm
    group = Group([scored(episode("up", "x"), PROCESS), scored(episode("x", "up", index=1), PROCESS)])
    assert [t.score.total for t in group.trajectories if t.score] == [0.5, 0.5]  # as episodes they are equal
    assign_credit([group], options)
    values = [credit.advantages[0][-4:] for credit in group.credits]
    assert np.all(values[0][:2] > 0) and np.all(values[0][2:] < 0)
    assert np.array_equal(values[1], -values[0])


def test_turns_that_do_not_add_up_are_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from vlrl.rewards import Scored\n"
        "def f(completion, answer, turns, given, value): return Scored(value, {}, given)\n"
    )
    for given, value, message in (
        ([1.0], 1.0, "1 turns for an episode of 2"),
        ([1.0, 1.0], 1.0, "sum to 2"),
        ([1.0, float("nan")], 1.0, "nan"),
    ):  # fmt: skip
        with pytest.raises(RewardFailure, match=message):
            scored(episode("a", "b"), {"name": f"{file}:f", "options": {"given": given, "value": value}})
