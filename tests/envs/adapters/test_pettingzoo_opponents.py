"""PettingZoo's worlds with opponents played inside, and where agents end at different times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from zoo_worlds import OX, ROW, WORLDS, act, zoo


def test_one_agent_ends_while_another_goes_on() -> None:
    env = zoo(f"{WORLDS}:Race")
    assert set(env.reset({}, 0)) == {"a", "b"}
    results = env.step({"a": act(0), "b": act(1)})
    assert {name: (r.reward, r.terminated) for name, r in results.items()} == {
        "a": (10, True),
        "b": (11, False),
    }
    results = env.step({"b": act(1)})
    assert {name: (r.reward, r.terminated) for name, r in results.items()} == {"b": (21, True)}
    learner = zoo(f"{WORLDS}:Race", opponents={"b": "random"})
    learner.reset({}, 0)
    assert learner.step(act(0)).terminated
    learner = zoo(f"{WORLDS}:Race", opponents={"a": "random"})
    learner.reset({}, 0)
    assert [learner.step(act(0)).terminated for _ in range(2)] == [False, True]


def test_an_end_is_told_though_others_move_before_somebody_is_asked() -> None:
    """a leaves; b is an opponent and moves; then c is to act, and a's end is in the same results."""
    env = zoo(f"{WORLDS}:Leaving", opponents={"b": f"{WORLDS}:always_one"})
    assert list(env.reset({}, 0)) == ["a"]
    assert list(env.step({"a": act(1)})) == ["c"]
    assert list(env.step({"c": act(1)})) == ["a"]
    results = env.step({"a": act(0)})
    assert {name: (r.reward, r.terminated) for name, r in results.items()} == {
        "a": (5, True),
        "c": (0, False),
    }
    assert list(env.step({"c": act(1)})) == ["c"]
    results = env.step({"c": act(0)})
    assert {name: (r.reward, r.terminated) for name, r in results.items()} == {"c": (5, True)}


def test_rewards_earned_while_others_moved_come_with_the_next_result() -> None:
    env = zoo(f"{WORLDS}:Gift")
    assert list(env.reset({}, 0)) == ["first"]
    second = env.step({"first": act(0)})["second"]
    assert second.reward == 1.0  # before its first action
    assert env.step({"second": act(0)})["first"].reward == 1.0
    assert env.step({"first": act(0)})["second"].reward == 1.0
    ends = env.step({"second": act(0)})
    assert {name: (r.reward, r.terminated) for name, r in ends.items()} == {
        "first": (1, True),
        "second": (0, True),
    }


@pytest.mark.parametrize("opponent", ["random", "oracle", f"{WORLDS}:always_zero"])
def test_what_an_opponent_s_opening_brought_comes_with_the_first_result(opponent: str) -> None:
    env = zoo(f"{WORLDS}:Gift", opponents={"first": opponent}, success={"return_at_least": 2})
    env.reset({}, 0)
    results = [env.step(act(0)), env.step(act(0))]
    assert [r.reward for r in results] == [2.0, 0.0]
    assert [r.terminated for r in results] == [False, True]
    assert results[-1].info["success"] is True


def test_an_opponent_of_a_file_is_played_inside() -> None:
    env = zoo(OX, opponents={"player_1": f"{WORLDS}:lowest"}, **ROW)
    assert "You are player_2." in env.system_prompt
    assert env.reset({}, 0).text == "O . .\n. . .\n. . ."
    assert env.step(act(4)).observation.text == "O O .\n. X .\n. . ."
    lost = env.step(act(8))
    assert (lost.reward, lost.terminated, lost.info["success"]) == (-1.0, True, False)
    env.reset({}, 0)
    for move in (4, 2):
        result = env.step(act(move))
    won = env.step(act(6))
    assert result.reward == 0.0
    assert (won.reward, won.terminated, won.info["success"]) == (1.0, True, True)
    env.close()


def test_a_random_opponent_is_legal_and_follows_the_seed() -> None:
    def game(seed: int) -> list[Any]:
        env = zoo(OX, opponents={"player_1": "random"}, **ROW)
        shown, rng, ended = [env.reset({}, seed).text], np.random.default_rng(7), False
        while not ended:
            result = env.step(env.random_action(rng))
            shown.append((result.observation.text, result.reward))
            ended = result.terminated
        return shown

    games = [game(seed) for seed in range(12)]
    assert games == [game(seed) for seed in range(12)]
    assert len({str(one) for one in games}) > 6
    assert all(one[-1][1] in (-1, 0, 1) for one in games)  # nobody loses by an illegal move


def test_random_actions_are_legal_and_have_words() -> None:
    env = zoo(OX, opponents={"player_2": "random"}, actions={"corner": 0, "centre": 4, "edge": 1}, **ROW)
    rng, drawn = np.random.default_rng(0), set()
    for seed in range(20):
        env.reset({}, seed)
        for _ in range(2):
            drawn.add(action := env.random_action(rng))
            result = env.step(action)
            # The opponent may have taken all that is left.
            assert result.info["invalid"] is False or "legal: ." in result.observation.text
    assert drawn == {act("corner"), act("centre"), act("edge")}


def test_random_play_wins_as_often_as_it_should() -> None:
    """A random first player wins 58.5 % and loses 28.8 % of games against a random second player."""
    env = zoo(OX, opponents={"player_2": "random"}, **ROW)
    rng, rewards = np.random.default_rng(0), []
    for seed in range(400):
        env.reset({}, seed)
        while not (result := env.step(env.random_action(rng))).terminated:
            pass
        rewards.append(result.reward)
    assert abs(np.mean(np.array(rewards) == 1) - 0.585) < 0.1  # four standard errors
    assert abs(np.mean(np.array(rewards) == -1) - 0.288) < 0.1


def test_an_opponent_that_plays_nonsense_is_a_broken_environment() -> None:
    env = zoo(OX, opponents={"player_1": f"{WORLDS}:wild"})
    with pytest.raises(ValueError, match=r"wild of player_1 played 99"):
        env.reset({}, 0)
