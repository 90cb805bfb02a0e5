"""PettingZoo's worlds, of turns and of simultaneous moves, as one: who is to act, and what it sees."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from vlrl.envs.adapters.gymnasium.env import DRAWING, draw
from vlrl.envs.adapters.packages import load
from vlrl.envs.adapters.turns import AdapterTurn
from vlrl.errors import ConfigError
from vlrl.registry import resolve

ADAPTER = "pettingzoo"
INSTALL = "vlrl[pettingzoo]"


@dataclass(frozen=True)
class WorldView:
    """What an agent is given: its turn, and which actions are legal ([n] of 0 and 1), None for all."""

    turn: AdapterTurn
    mask: Any = None


class World(Protocol):
    """Agents by name. A view that ends nothing makes its agent one of those that are to act."""

    simultaneous: bool
    raw: Any
    """PettingZoo's environment."""

    def reset(self, seed: int, options: Mapping[str, Any] | None) -> dict[str, WorldView]:
        """Start an episode."""
        ...

    def step(self, actions: Mapping[str, Any]) -> dict[str, WorldView]:
        """One action of each agent that is to act; views of those who act next or have ended."""
        ...


class TurnWorld:
    """An AECEnv. Dead agents are led out at once; their last view comes with the step that ended them."""

    simultaneous = False

    def __init__(self, raw: Any, id: str) -> None:
        self.raw, self._id = raw, id

    def reset(self, seed: int, options: Mapping[str, Any] | None) -> dict[str, WorldView]:
        """The view of who begins."""
        self.raw.reset(seed=seed, options=options)
        return self._views()

    def step(self, actions: Mapping[str, Any]) -> dict[str, WorldView]:
        """The selected agent's action."""
        ((agent, action),) = actions.items()
        assert agent == str(self.raw.agent_selection), f"{agent} is not to act"
        self.raw.step(action)
        return self._views()

    def _views(self) -> dict[str, WorldView]:
        image = _image(self.raw, self._id)
        views: dict[str, WorldView] = {}
        while self.raw.agents:
            agent = str(self.raw.agent_selection)
            observation, reward, terminated, truncated, info = self.raw.last()
            views[agent] = _view(observation, image, reward, terminated, truncated, info)
            if not views[agent].turn.ended:
                break
            self.raw.step(None)
        return views


class SimultaneousWorld:
    """A ParallelEnv."""

    simultaneous = True

    def __init__(self, raw: Any, id: str) -> None:
        self.raw, self._id = raw, id

    def reset(self, seed: int, options: Mapping[str, Any] | None) -> dict[str, WorldView]:
        """Views of all."""
        observations, infos = self.raw.reset(seed=seed, options=options)
        image = _image(self.raw, self._id)
        return {
            str(agent): _view(observation, image, 0.0, False, False, infos.get(agent, {}))
            for agent, observation in observations.items()
        }

    def step(self, actions: Mapping[str, Any]) -> dict[str, WorldView]:
        """The actions of all that still play."""
        agents = {str(agent): agent for agent in self.raw.agents}
        given = self.raw.step({agents[name]: action for name, action in actions.items()})
        observations, rewards, terminations, truncations, infos = given
        image = _image(self.raw, self._id)
        return {
            str(agent): _view(
                observation,
                image,
                rewards.get(agent, 0.0),
                terminations.get(agent, False),
                truncations.get(agent, False),
                infos.get(agent, {}),
            )
            for agent, observation in observations.items()
        }


def _image(raw: Any, id: str) -> Any:
    return draw(raw, id) if getattr(raw, "render_mode", None) else None


def _view(
    observation: Any, image: Any, reward: Any, terminated: Any, truncated: Any, info: Mapping[str, Any]
) -> WorldView:
    """The mask is where PettingZoo's classic games have it: in the observation, or in the info."""
    mask = info.get("action_mask")
    if isinstance(observation, Mapping) and "action_mask" in observation:
        mask, observation = observation["action_mask"], observation.get("observation")
    return WorldView(
        AdapterTurn(observation, image, float(reward), bool(terminated), bool(truncated), info), mask
    )


def open_world(id: str, kwargs: Mapping[str, Any], mode: str | None, image: bool) -> World:
    """Make the world.

    Args:
        id: of PettingZoo's registry ("classic/tictactoe_v3"), a module with `env` or `parallel_env`
            ("mpe2.simple_spread_v3"), or ./file.py:function.
        kwargs: its arguments.
        mode: "turns", "simultaneous", or None for simultaneous where the world has that.
        image: whether it is to draw.

    Raises:
        ConfigError: if there is no such world.
    """
    zoo = load("pettingzoo", ADAPTER, INSTALL)
    place = f"env {ADAPTER}: option id={id!r}"
    if mode not in ("turns", "simultaneous", None):
        raise ConfigError(f"env {ADAPTER}: option mode={mode!r}; give turns or simultaneous")
    if "render_mode" in kwargs:
        raise ConfigError(f"env {ADAPTER}: option kwargs: say image: false instead of a render_mode")
    arguments = {**kwargs, "render_mode": "rgb_array" if image else None}
    try:
        raw = _maker(zoo, id, mode)(**arguments)
    except (ImportError, AttributeError, importlib.import_module(_ERRORS).PettingZooRegistryError) as error:
        raise ConfigError(f"{place}: {error}") from error
    if image and "rgb_array" not in raw.metadata.get("render_modes", []):
        raise ConfigError(f"{place}: it draws no rgb_array images; set image: false and a text")
    if not getattr(raw, "possible_agents", None):
        raise ConfigError(f"{place}: it does not name its agents (possible_agents)")
    return SimultaneousWorld(raw, id) if isinstance(raw, zoo.ParallelEnv) else TurnWorld(raw, id)


_ERRORS = "pettingzoo.env_registry.exceptions"


def _maker(zoo: Any, id: str, mode: str | None) -> Any:
    """What makes the environment from its arguments."""
    if ".py:" in id:
        return resolve("envs", id)
    if "/" in id:
        kind = "parallel" if mode == "simultaneous" else "aec"
        if mode is None and id in zoo.parallel_registry:
            kind = "parallel"
        return lambda **arguments: zoo.make(kind, id, **arguments)
    module = importlib.import_module(id)
    both = ("parallel_env", "env")
    names = {"turns": both[1:], "simultaneous": both[:1]}.get(mode or "", both)
    for name in names:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"the module has no {' or '.join(names)}")


def loses_by_illegal_moves(raw: Any) -> bool:
    """Whether PettingZoo's TerminateIllegalWrapper is around the environment."""
    from pettingzoo.utils.wrappers import TerminateIllegalWrapper

    while not isinstance(raw, TerminateIllegalWrapper):
        if "env" not in vars(raw):
            return False
        raw = raw.env
    return True


def close(raw: Any) -> None:
    """Close a PettingZoo environment."""
    with DRAWING:
        raw.close()
