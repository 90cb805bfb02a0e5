"""A team of two: what each sees, what passes between them, and what is paid."""

from __future__ import annotations

import numpy as np
import pytest

from vlrl.envs.tasks import EnvTasks
from vlrl.envs.visual.games.team_digits import GIVER, GUESSER, TeamDigits
from vlrl.errors import ConfigError


def opened(seed: int = 3) -> tuple[TeamDigits, str]:
    """An episode in which the giver is to act, and what the oracle says for it."""
    env = TeamDigits()
    views = env.reset({}, seed)
    assert list(views) == [GIVER]
    return env, env.oracle(GIVER)


def test_the_oracle_is_paid_and_both_are_told() -> None:
    env, said = opened()
    seen = env.step({GIVER: said})
    assert list(seen) == [GUESSER]
    digit = said.removeprefix("<action>").removesuffix("</action>")
    assert seen[GUESSER].observation.text == f"It says {digit}. Give both."
    end = env.step({GUESSER: env.oracle(GUESSER)})
    for agent in (GIVER, GUESSER):
        assert (end[agent].reward, end[agent].terminated) == (1.0, True)
        assert end[agent].info == {"success": True, "invalid": False}


def test_each_sees_its_own_digit_alone() -> None:
    env = TeamDigits()
    shown = env.reset({}, 3)[GIVER].images[0]
    other = env.step({GIVER: "<action>1</action>"})[GUESSER].observation.images[0]
    assert not np.array_equal(shown, other)
    again = TeamDigits().reset({}, 3)[GIVER].images[0]
    assert np.array_equal(shown, again)


@pytest.mark.parametrize(
    "said", ["", "7", "<action></action>", "<action><|im_end|></action>", "<action>é</action>"]
)
def test_what_is_no_message_is_silence(said: str) -> None:
    env, _ = opened()
    assert env.step({GIVER: said})[GUESSER].observation.text == "It says nothing. Give both."
    end = env.step({GUESSER: env.oracle(GUESSER)})
    assert end[GIVER].info == {"success": True, "invalid": True}


@pytest.mark.parametrize(("said", "invalid"), [("<action>1</action>", False), ("who knows", True)])
def test_a_wrong_answer_is_paid_to_nobody(said: str, invalid: bool) -> None:
    env, first = opened()
    env.step({GIVER: first})
    end = env.step({GUESSER: said})
    assert {result.reward for result in end.values()} == {0.0}
    assert end[GUESSER].info == {"success": False, "invalid": invalid}


def test_the_scans_are_one_of_two_sets() -> None:
    with pytest.raises(ConfigError, match="scans='test', partial=False; scans is"):
        TeamDigits(scans="test")  # type: ignore[arg-type]


def test_a_demonstration_is_one_agents_part() -> None:
    rows = EnvTasks("team/digits", {}, num_rows=4, demonstrations=True)
    giver, guesser = rows[2], rows[3]
    assert [row["id"] for row in (giver, guesser)] == [
        "team/digits/train/1/giver",
        "team/digits/train/1/guesser",
    ]
    assert [message["role"] for message in giver["messages"]] == ["system", "user"]
    digit = giver["target"][len("<action>")]
    assert guesser["messages"][1]["content"][-1]["text"] == f"It says {digit}. Give both."
    assert guesser["target"].startswith(f"<action>{digit}")
    assert len(guesser["target"]) == len(giver["target"]) + 1


@pytest.mark.parametrize(("right", "paid"), [((0, 1), 1.0), ((0,), 0.5), ((1,), 0.5), ((), 0.0)])
def test_a_half_is_paid_for_each_right_digit(right: tuple[int, ...], paid: float) -> None:
    env = TeamDigits(partial=True)
    env.reset({}, 3)
    env.step({GIVER: env.oracle(GIVER)})
    digits = env.oracle(GUESSER).removeprefix("<action>").removesuffix("</action>")
    said = "".join(d if place in right else str((int(d) + 1) % 10) for place, d in enumerate(digits))
    end = env.step({GUESSER: f"<action>{said}</action>"})
    assert {result.reward for result in end.values()} == {paid}
    assert end[GIVER].info["success"] == (paid == 1.0)


def test_one_digit_is_half_of_no_answer() -> None:
    env = TeamDigits(partial=True)
    env.reset({}, 3)
    said = env.oracle(GIVER)
    env.step({GIVER: said})
    assert env.step({GUESSER: said})[GUESSER].reward == 0.0
