"""PettingZoo's own worlds by the contracts of one agent and of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pettingzoo
import pytest
from mpe2 import simple_spread_v3
from pettingzoo.classic.tictactoe.tictactoe import env as tictactoe
from zoo_worlds import OX, ROW, SPREAD, WORLDS, act, zoo

from vlrl.environment.open import open_env
from vlrl.errors import ConfigError


def play(env: Any, moves: list[int]) -> dict[str, Any]:
    """Moves in turn, whoever is to act; the last results."""
    due: Any = env.reset({}, 0)
    results: dict[str, Any] = {}
    for move in moves:
        (agent,) = [name for name in due if name not in results or not results[name].terminated]
        due = results = env.step({agent: act(move)})
    return results


def test_a_game_of_turns_is_the_world_s_own() -> None:
    """Step by step beside PettingZoo's loop: who acts, what is seen, and the rewards since the last move."""
    env = zoo("classic/connect_four_v3", image_size=64)
    raw = pettingzoo.make("aec", "classic/connect_four_v3", render_mode="rgb_array")
    full = zoo("classic/connect_four_v3")
    views, same = env.reset({}, 3), full.reset({}, 3)
    raw.reset(seed=3)
    rng = np.random.default_rng(1)
    assert list(views) == [raw.agent_selection] == ["player_0"]
    results: dict[str, Any] = {}
    agent = "player_0"
    while True:
        mask = raw.last()[0]["action_mask"]
        move = int(rng.choice(np.flatnonzero(mask)))
        raw.step(move)
        results, same = env.step({agent: act(move)}), full.step({agent: act(move)})
        assert np.array_equal(next(iter(same.values())).observation.images[0], raw.render())
        assert next(iter(results.values())).observation.images[0].shape == (56, 64, 3)
        if any(raw.terminations.values()):
            break
        assert list(results) == [raw.agent_selection]
        agent = raw.agent_selection
    assert set(results) == {"player_0", "player_1"}
    for name, result in results.items():
        assert result.terminated
        assert result.reward == raw._cumulative_rewards[name]
        assert result.info["success"] is (result.reward > 0)
    assert sorted(r.reward for r in results.values()) == [-1, 1]
    with pytest.raises(ValueError, match=r"\[\] are to act"):
        env.step({agent: act(0)})
    env.close()
    env.close()


def test_who_won_and_who_lost() -> None:
    env = zoo(OX)
    results = play(env, [0, 3, 1, 4, 2])
    assert {name: (r.reward, r.info["success"]) for name, r in results.items()} == {
        "player_1": (1.0, True),
        "player_2": (-1.0, False),
    }
    draw = play(env, [0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert [(r.reward, r.terminated, r.info["success"]) for r in draw.values()] == [(0, True, False)] * 2


def test_prompts_name_the_agent_and_boards_are_shown_from_its_side() -> None:
    env = zoo(OX, **ROW, instructions="Three in a row win.")
    assert env.agents == ("player_1", "player_2")
    assert env.system_prompts["player_2"].startswith("You are player_2.\nThree in a row win.\n")
    first = env.reset({}, 0)["player_1"]
    assert (list(first.images), first.text) == ([], ". . .\n. . .\n. . .")
    assert env.step({"player_1": act(4)})["player_2"].observation.text == ". . .\n. O .\n. . ."
    assert env.step({"player_2": act(0)})["player_1"].observation.text == "O . .\n. X .\n. . ."


def test_an_agent_s_steps_are_its_own_actions() -> None:
    env = zoo(OX, text="step {step}", image=False)
    assert env.reset({}, 0)["player_1"].text == "step 0"
    assert env.step({"player_1": act(4)})["player_2"].observation.text == "step 0"
    assert env.step({"player_2": act(0)})["player_1"].observation.text == "step 1"
    assert env.step({"player_1": act(1)})["player_2"].observation.text == "step 1"


def test_an_illegal_move_is_answered_or_loses() -> None:
    env = zoo(OX)
    env.reset({}, 0)
    env.step({"player_1": act(4)})
    for text, says in (
        (act(4), "not legal now; legal: 0, 1, 2, 3, 5, 6, 7, 8"),
        (act(9), "9"),
        ("4", "no action"),
    ):
        result = env.step({"player_2": text})["player_2"]
        assert (result.reward, result.terminated, result.info["invalid"]) == (0.0, False, True)
        assert says in result.observation.text
    assert list(env.step({"player_2": act(0)})) == ["player_1"]
    env = zoo(OX, illegal="lose")
    env.reset({}, 0)
    env.step({"player_1": act(4)})
    assert env.step({"player_2": act("x")})["player_2"].info["invalid"] is True
    results = env.step({"player_2": act(4)})
    assert {name: r.reward for name, r in results.items()} == {"player_1": 0.0, "player_2": -1.0}
    assert all(r.terminated for r in results.values())


def test_simultaneous_moves_are_the_world_s_own() -> None:
    env = zoo(**SPREAD)
    raw = simple_spread_v3.parallel_env(render_mode="rgb_array", **SPREAD["kwargs"])
    views = env.reset({}, 5)
    raw.reset(seed=5)
    assert np.array_equal(views["agent_0"].images[0], raw.render())
    rng = np.random.default_rng(0)
    for _ in range(3):
        moves = {name: int(rng.integers(5)) for name in env.agents}
        results = env.step({name: act(move) for name, move in moves.items()})
        _, rewards, terminations, truncations, _ = raw.step(moves)
        for name in env.agents:
            result = results[name]
            expected = (rewards[name], terminations[name], truncations[name])
            assert (result.reward, result.terminated, result.truncated) == expected
            assert np.array_equal(result.observation.images[0], raw.render())
    assert all(r.truncated and not r.info["success"] for r in results.values())
    env.close()


def test_the_world_waits_for_one_whose_text_is_no_action() -> None:
    env, other = zoo(**SPREAD), zoo(**SPREAD)
    env.reset({}, 1)
    other.reset({}, 1)
    refused = env.step({"agent_0": act(1), "agent_1": "hm"})
    assert list(refused) == ["agent_1"]
    assert refused["agent_1"].info["invalid"] is True
    with pytest.raises(ValueError, match=r"\['agent_1'\] are to act"):
        env.step({"agent_0": act(1), "agent_1": act(2)})
    late = env.step({"agent_1": act(2)})
    at_once = other.step({"agent_0": act(1), "agent_1": act(2)})
    assert {n: (r.reward, r.info) for n, r in late.items()} == {
        n: (r.reward, r.info) for n, r in at_once.items()
    }


def test_actions_may_be_declared_for_each_agent() -> None:
    both = {"speaker_0": ["red", "green", "blue"], "listener_0": ["stay", "left", "right", "down", "up"]}
    env = zoo("mpe2.simple_speaker_listener_v4", actions=both)
    assert "one of: red, green, blue" in env.system_prompts["speaker_0"]
    assert "one of: stay, left, right, down, up" in env.system_prompts["listener_0"]
    env.reset({}, 0)
    assert set(env.step({"speaker_0": act("red"), "listener_0": act("up")})) == set(both)
    env.close()


def test_pettingzoo_s_own_test_is_asked() -> None:
    for env in (zoo(OX), zoo(OX, opponents={"player_1": "random"}), zoo(**SPREAD)):
        assert not [finding for finding in env.findings() if "Error" in finding]
    assert any("Error" in finding for finding in zoo(f"{WORLDS}:Race").findings())


def test_a_world_made_by_a_module_is_the_one_of_the_registry() -> None:
    one, other = zoo(OX), zoo("pettingzoo.classic.tictactoe_v3")
    assert play(one, [0, 3, 1, 4, 2])["player_1"].info == play(other, [0, 3, 1, 4, 2])["player_1"].info
    assert tictactoe().possible_agents == list(one.agents)
    turns = zoo("mpe2.simple_spread_v3", mode="turns", kwargs={"N": 2})
    assert list(turns.reset({}, 0)) == ["agent_0"]
    assert list(turns.step({"agent_0": act(0)})) == ["agent_1"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"id": "classic/nothing_v1"}, "nothing_v1"),
        ({"id": "no.such.module"}, "No module named"),
        ({"id": "pettingzoo.classic.tictactoe_v3", "mode": "simultaneous"}, "no parallel_env"),
        ({"id": OX, "mode": "both"}, "turns or simultaneous"),
        ({"id": OX, "kwargs": {"render_mode": "human"}}, "render_mode"),
        ({"id": OX, "kwargs": {"speed": 1}}, "speed"),
        ({"id": OX, "colour": 1}, "colour"),
        ({"id": OX, "image": False}, "nothing to see"),
        ({"id": OX, "illegal": "ignore"}, "answer or lose"),
        ({**SPREAD, "illegal": "lose"}, "TerminateIllegalWrapper"),
        ({"id": OX, "opponents": {"player_3": "random"}}, "no agent is named 'player_3'"),
        ({"id": OX, "opponents": {"player_1": "random", "player_2": "random"}}, "leave an agent"),
        ({"id": OX, "opponents": {"player_1": "clever"}}, "give random, oracle or"),
        ({"id": OX, "opponents": {"player_1": "oracle"}}, "no oracle"),
        ({"id": OX, "opponents": {"player_1": f"{WORLDS}:nobody"}}, "nobody"),
        ({"id": OX, "actions": ["left"]}, "a list names every action"),
    ],
)
def test_a_wrong_option_is_named(options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        open_env("pettingzoo", options)


def test_a_wrong_task_is_named() -> None:
    with pytest.raises(ConfigError, match="level"):
        zoo(OX).reset({"level": 1}, 0)
