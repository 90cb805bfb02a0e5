"""PettingZoo's own worlds by the contracts of one agent and of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pettingzoo
import pytest
from mpe2 import simple_spread_v3
from pettingzoo.classic.tictactoe.tictactoe import env as tictactoe

from vlrl.envs.open import open_env
from vlrl.errors import ConfigError

OX = "classic/tictactoe_v3"
ROW = {"text": True, "image": False}
SPREAD = {"id": "mpe2.simple_spread_v3", "kwargs": {"max_cycles": 3, "N": 2}}


def zoo(id: str, **options: Any) -> Any:
    return open_env("pettingzoo", {"id": id, **options})


def act(word: Any) -> str:
    return f"<action>{word}</action>"


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


class Race(pettingzoo.ParallelEnv[str, Any, Any]):
    """a ends after one step, b after two: one goes on without the other."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "name": "race"}
        self.render_mode, self.possible_agents, self.agents = render_mode, ["a", "b"], []

    def observation_space(self, agent: str) -> Any:
        return pettingzoo.utils.env.gymnasium.spaces.Discrete(9)

    def action_space(self, agent: str) -> Any:
        return pettingzoo.utils.env.gymnasium.spaces.Discrete(2)

    def reset(self, seed: Any = None, options: Any = None) -> Any:
        self.agents, self.at = ["a", "b"], 0
        return dict.fromkeys(self.agents, 0), {name: {} for name in self.agents}

    def step(self, actions: Any) -> Any:
        assert set(actions) == set(self.agents)
        self.at += 1
        acting, ended = self.agents, {name: self.at > (name == "b") for name in self.agents}
        self.agents = [name for name in acting if not ended[name]]
        rewards = {name: 10.0 * self.at + (name == "b") for name in acting}
        empty: Any = {name: {} for name in acting}
        return dict.fromkeys(acting, self.at), rewards, ended, dict.fromkeys(acting, False), empty

    def render(self) -> Any:
        return np.zeros((2, 2, 3), np.uint8)


class Gift(pettingzoo.AECEnv[str, Any, Any]):
    """Turns of first and second. Every move gives the other player 1; after four moves it is over."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "name": "gift"}
        self.render_mode, self.possible_agents = render_mode, ["first", "second"]

    observation_space = Race.observation_space
    action_space = Race.action_space
    render = Race.render

    def reset(self, seed: Any = None, options: Any = None) -> None:
        self.agents, self.at = ["first", "second"], 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = (
            dict.fromkeys(self.agents, False),
            dict.fromkeys(self.agents, False),
        )
        self.infos: Any = {name: {} for name in self.agents}
        self.agent_selection = "first"

    def observe(self, agent: str) -> Any:
        return self.at

    def oracle(self, agent: str) -> Any:
        return 1

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        mover = self.agent_selection
        other = "second" if mover == "first" else "first"
        self.at += 1
        self._cumulative_rewards[mover] = 0.0
        self.rewards = {mover: 0.0, other: 1.0}
        self._accumulate_rewards()
        if self.at == 4:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = other


class Leaving(pettingzoo.AECEnv[str, Any, Any]):
    """Turns of a, b and c. Who plays 0 leaves with a reward of 5, the others go on."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "name": "leaving"}
        self.render_mode, self.possible_agents = render_mode, ["a", "b", "c"]

    observation_space = Race.observation_space
    action_space = Race.action_space
    render = Race.render

    def reset(self, seed: Any = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = (
            dict.fromkeys(self.agents, False),
            dict.fromkeys(self.agents, False),
        )
        self.infos: Any = {name: {} for name in self.agents}
        self.agent_selection = "a"

    def observe(self, agent: str) -> Any:
        return len(self.agents)

    def step(self, action: Any) -> None:
        mover = self.agent_selection
        if self.terminations[mover]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[mover] = 0.0 if action else 5.0
        after = [*self.agents, *self.agents][self.agents.index(mover) + 1 :]
        self.agent_selection = after[0]
        if not action:
            self.terminations[mover] = True
            self._deads_step_first()


HERE = f"{Path(__file__)}"


def test_one_agent_ends_while_another_goes_on() -> None:
    env = zoo(f"{HERE}:Race")
    assert set(env.reset({}, 0)) == {"a", "b"}
    results = env.step({"a": act(0), "b": act(1)})
    assert {name: (r.reward, r.terminated) for name, r in results.items()} == {
        "a": (10, True),
        "b": (11, False),
    }
    results = env.step({"b": act(1)})
    assert {name: (r.reward, r.terminated) for name, r in results.items()} == {"b": (21, True)}
    learner = zoo(f"{HERE}:Race", opponents={"b": "random"})
    learner.reset({}, 0)
    assert learner.step(act(0)).terminated
    learner = zoo(f"{HERE}:Race", opponents={"a": "random"})
    learner.reset({}, 0)
    assert [learner.step(act(0)).terminated for _ in range(2)] == [False, True]


def test_an_end_is_told_though_others_move_before_somebody_is_asked() -> None:
    """a leaves; b is an opponent and moves; then c is to act, and a's end is in the same results."""
    env = zoo(f"{HERE}:Leaving", opponents={"b": f"{HERE}:always_one"})
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
    env = zoo(f"{HERE}:Gift")
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


@pytest.mark.parametrize("opponent", ["random", "oracle", f"{HERE}:always_zero"])
def test_what_an_opponent_s_opening_brought_comes_with_the_first_result(opponent: str) -> None:
    env = zoo(f"{HERE}:Gift", opponents={"first": opponent}, success={"return_at_least": 2})
    env.reset({}, 0)
    results = [env.step(act(0)), env.step(act(0))]
    assert [r.reward for r in results] == [2.0, 0.0]
    assert [r.terminated for r in results] == [False, True]
    assert results[-1].info["success"] is True


def always_zero(observation: Any, mask: Any, rng: Any) -> int:
    return 0


def always_one(observation: Any, mask: Any, rng: Any) -> int:
    return 1


def lowest(observation: Any, mask: Any, rng: Any) -> int:
    assert observation.shape == (3, 3, 2)
    return int(np.flatnonzero(mask)[0])


def wild(observation: Any, mask: Any, rng: Any) -> Any:
    return 99


def test_an_opponent_of_a_file_is_played_inside() -> None:
    env = zoo(OX, opponents={"player_1": f"{HERE}:lowest"}, **ROW)
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
    """Against a random second player, a random first player wins 58.5 % and loses 28.8 % of games."""
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
    env = zoo(OX, opponents={"player_1": f"{HERE}:wild"})
    with pytest.raises(ValueError, match=r"wild of player_1 played 99"):
        env.reset({}, 0)


def test_pettingzoo_s_own_test_is_asked() -> None:
    for env in (zoo(OX), zoo(OX, opponents={"player_1": "random"}), zoo(**SPREAD)):
        assert not [finding for finding in env.findings() if "Error" in finding]
    assert any("Error" in finding for finding in zoo(f"{HERE}:Race").findings())


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
        ({"id": OX, "opponents": {"player_1": f"{HERE}:nobody"}}, "nobody"),
        ({"id": OX, "actions": ["left"]}, "a list names every action"),
    ],
)
def test_a_wrong_option_is_named(options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        open_env("pettingzoo", options)


def test_a_wrong_task_is_named() -> None:
    with pytest.raises(ConfigError, match="level"):
        zoo(OX).reset({"level": 1}, 0)
