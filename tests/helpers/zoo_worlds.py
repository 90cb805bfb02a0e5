"""Worlds of several agents and opponents, as plug-ins of a file, and the words their tests are written in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pettingzoo

from vlrl.environment.open import open_env

WORLDS = __file__
"""What stands before the colon in an id or an opponent of this file."""
OX = "classic/tictactoe_v3"
ROW = {"text": True, "image": False}
SPREAD = {"id": "mpe2.simple_spread_v3", "kwargs": {"max_cycles": 3, "N": 2}}


def zoo(id: str, **options: Any) -> Any:
    return open_env("pettingzoo", {"id": id, **options})


def act(word: Any) -> str:
    return f"<action>{word}</action>"


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


def always_zero(observation: Any, mask: Any, rng: Any) -> int:
    return 0


def always_one(observation: Any, mask: Any, rng: Any) -> int:
    return 1


def lowest(observation: Any, mask: Any, rng: Any) -> int:
    assert observation.shape == (3, 3, 2)
    return int(np.flatnonzero(mask)[0])


def wild(observation: Any, mask: Any, rng: Any) -> Any:
    return 99
