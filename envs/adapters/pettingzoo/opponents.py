"""Opponents that the adapter plays itself, for agents that are not the policy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from vlrl.envs.adapters.gymnasium.grammar import Grammar
from vlrl.envs.adapters.pettingzoo.worlds import ADAPTER, WorldView
from vlrl.errors import ConfigError
from vlrl.registry import resolve

Opponent: TypeAlias = Callable[[WorldView, np.random.Generator], Any]


def open_opponent(name: str, agent: str, raw: Any, grammar: Grammar) -> Opponent:
    """What chooses an agent's moves.

    Args:
        name: "random" draws evenly from the legal actions; "oracle" asks the environment's own oracle(agent);
            ./file.py:function is a function of the observation, the mask of legal actions ([n] of 0 and 1, or
            None) and a numpy Generator, that returns an action of the space.
        agent: whom it plays.
        raw: PettingZoo's environment.
        grammar: of the agent's actions.

    Raises:
        ConfigError: if there is no such opponent.
    """
    if name == "random":
        return lambda view, rng: draw_legal(grammar, view.mask, rng)
    if name == "oracle":
        oracle = getattr(raw.unwrapped, "oracle", None)
        if oracle is None:
            raise ConfigError(
                f"env {ADAPTER}: opponents: {agent}: oracle: the environment has no oracle(agent)"
            )
        return lambda view, rng: oracle(agent)
    if ".py:" not in name:
        raise ConfigError(
            f"env {ADAPTER}: opponents: {agent}: {name!r}; give random, oracle or ./file.py:function"
        )
    function = resolve("envs", name)

    def move(view: WorldView, rng: np.random.Generator) -> Any:
        action = function(view.turn.observation, view.mask, rng)
        if not grammar.space.contains(action):
            raise ValueError(f"opponent {name} of {agent} played {action!r:.60}, not one of {grammar.space}")
        return action

    return move


def draw_legal(grammar: Grammar, mask: Any, rng: np.random.Generator) -> Any:
    """Any legal action that the grammar has a text for, evenly; if there is none, any that it has."""
    if not restricts(grammar, mask):
        return grammar.sample(rng)
    actions = [action for action in legal_actions(grammar, mask) if grammar.write(action) is not None]
    return actions[int(rng.integers(len(actions)))] if actions else grammar.sample(rng)


def legal(grammar: Grammar, mask: Any, action: Any) -> bool:
    """Whether the mask allows an action."""
    return not restricts(grammar, mask) or bool(mask[int(action) - int(grammar.space.start)])


def legal_actions(grammar: Grammar, mask: Any) -> list[Any]:
    """What a mask over Discrete actions allows."""
    return [grammar.space.dtype.type(index + grammar.space.start) for index in np.flatnonzero(mask)]


def restricts(grammar: Grammar, mask: Any) -> bool:
    """Whether there is a mask that says something: PettingZoo's are over Discrete actions."""
    from gymnasium import spaces

    return mask is not None and isinstance(grammar.space, spaces.Discrete)
