"""PettingZoo's worlds of several agents: all of them the policy's, or some played inside the adapter."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from vlrl.envs.adapters.gymnasium.env import reset_arguments
from vlrl.envs.adapters.gymnasium.grammar import Grammar, grammar_of
from vlrl.envs.adapters.gymnasium.spaces import NoAction
from vlrl.envs.adapters.packages import load
from vlrl.envs.adapters.pettingzoo.opponents import draw_legal, legal, legal_actions, open_opponent
from vlrl.envs.adapters.pettingzoo.worlds import (
    ADAPTER,
    INSTALL,
    WorldView,
    close,
    loses_by_illegal_moves,
    open_world,
)
from vlrl.envs.adapters.turns import Episode, Showing, prompt, tagged
from vlrl.errors import ConfigError
from vlrl.protocols import Env, MultiAgentEnv, Observation, StepResult
from vlrl.seeds import derive_seed


def open_pettingzoo(**options: Any) -> Env | MultiAgentEnv:
    """A PettingZoo world: an Env if the option opponents leaves one agent to the policy, else MultiAgentEnv.

    The options are those of `PettingZoo`.
    """
    world = PettingZoo(**options)
    return OneAgent(world) if len(world.agents) == 1 else world


class PettingZoo:
    """Several agents of a PettingZoo world, by the contract of `MultiAgentEnv`.

    Rewards are PettingZoo's: in games of turns what an agent earned since its last move.
    """

    def __init__(
        self,
        id: str,
        kwargs: Mapping[str, Any] | None = None,
        mode: Literal["turns", "simultaneous"] | None = None,
        actions: Mapping[str, Any] | Sequence[str] | None = None,
        opponents: Mapping[str, str] | None = None,
        illegal: Literal["answer", "lose"] = "answer",
        image: bool = True,
        image_size: int | Sequence[int] | None = None,
        text: str | bool = False,
        success: Mapping[str, Any] | None = None,
        instructions: str = "",
    ) -> None:
        """Make the world.

        Args:
            id: of PettingZoo's registry ("classic/tictactoe_v3"), a module with `env` or `parallel_env`
                ("mpe2.simple_spread_v3"), or ./file.py:function.
            kwargs: the world's own arguments.
            mode: None is simultaneous where the world has that.
            actions: a grammar for all agents (see `vlrl.envs.adapters.gymnasium.grammar`), or one by agent's
                name.
            opponents: agents played inside: name to random, oracle or ./file.py:function (see opponents.py).
            illegal: a move that the world's action mask forbids is answered like an invalid action,
                or ends the game as the world's TerminateIllegalWrapper says.
            image: whether the world's image is shown; everybody sees the same one.
            image_size: the longer side of the images in pixels, or [width, height]; None as drawn.
            text: template of an observation's text, see "gymnasium"; true shows the agent's own observation,
                boards as X (own) and O (the other's).
            success: see "gymnasium"; None is an agent whose last reward is above 0.
            instructions: put before the action's form in the system prompts.

        Raises:
            ConfigError: for a wrong option.
        """
        template = {True: "{observation}", False: ""}[text] if isinstance(text, bool) else text
        self._showing = Showing(ADAPTER, image_size, template, success)
        if not image and not template:
            raise ConfigError(f"env {ADAPTER}: image: false leaves nothing to see; set text: true")
        self._arguments = (id, dict(kwargs or {}), mode)
        self._world = open_world(*self._arguments, image)
        raw = self._world.raw
        everyone = {str(agent): agent for agent in raw.possible_agents}
        try:
            opponents = _known(opponents or {}, everyone, "opponents")
            self.agents: Sequence[str] = tuple(name for name in everyone if name not in opponents)
            if not self.agents:
                raise ConfigError(f"env {ADAPTER}: opponents play everyone; leave an agent to the policy")
            if illegal not in ("answer", "lose"):
                raise ConfigError(f"env {ADAPTER}: option illegal={illegal!r}; give answer or lose")
            if illegal == "lose" and (self._world.simultaneous or not loses_by_illegal_moves(raw)):
                raise ConfigError(
                    f"env {ADAPTER}: illegal: lose needs a world of turns that PettingZoo's "
                    "TerminateIllegalWrapper is around"
                )
            self._grammars = {
                name: grammar_of(raw.action_space(agent), _of(actions, name, everyone), ADAPTER)
                for name, agent in everyone.items()
            }
            self._opponents = {
                name: open_opponent(kind, name, raw, self._grammars[name]) for name, kind in opponents.items()
            }
        except ConfigError:
            self.close()
            raise
        self._answers_illegal = illegal == "answer"
        self.system_prompts = {
            name: prompt("\n".join(filter(None, (f"You are {name}.", instructions))), self._grammars[name])
            for name in self.agents
        }
        self._episodes: dict[str, Episode] = {}
        self._due: dict[str, WorldView] = {}
        self._moves: dict[str, Any] = {}

    def reset(self, task: Mapping[str, Any], seed: int) -> Mapping[str, Observation]:
        """Start an episode; opponents who begin have moved.

        Args:
            task: {} or {"options": the world's own reset options}.
            seed: of the world (modulo 2**31) and of the opponents.

        Raises:
            ConfigError: for another key in `task`.
            RuntimeError: if the episode is over before any agent of the policy is to act.
        """
        arguments = reset_arguments(task, seed, ADAPTER)
        self._rngs = {
            name: np.random.default_rng(derive_seed(ADAPTER, "opponent", seed, name))
            for name in self._opponents
        }
        self._episodes = {name: Episode(self._showing, self._grammars[name]) for name in self.agents}
        self._moves = {}
        views = self._settled(self._world.reset(**arguments))
        if any(view.turn.ended for view in views.values()) or not views:
            raise RuntimeError(f"env {ADAPTER}: an agent's episode was over before it was to act")
        return {name: self._episodes[name].begin(view.turn) for name, view in views.items()}

    def step(self, actions: Mapping[str, str]) -> Mapping[str, StepResult]:
        """Apply a text of each agent that is to act.

        Raises:
            ValueError: if they are not the ones to act.
        """
        asked = {name for name in self.agents if name in self._due} - self._moves.keys()
        if actions.keys() != asked or not asked:
            raise ValueError(f"env {ADAPTER}: {sorted(asked)} are to act, not {sorted(actions)}")
        refused = {}
        for name, text in actions.items():
            try:
                self._moves[name] = self._move(name, text)
            except NoAction as error:
                refused[name] = self._episodes[name].refuse(error)
        if refused:
            return refused
        moves, self._moves = self._moves, {}
        moves |= {name: self._opponent_move(name) for name in self._due if name in self._opponents}
        views = self._settled(self._world.step(moves))
        return {name: self._episodes[name].after(view.turn) for name, view in views.items()}

    def random_action(self, agent: str, rng: np.random.Generator) -> str:
        """Any action that is legal for the agent now."""
        mask = self._due[agent].mask if agent in self._due else None
        return tagged(self._grammars[agent], draw_legal(self._grammars[agent], mask, rng))

    def findings(self) -> list[str]:
        """What PettingZoo's own API test says of a fresh copy of the world: failures and warnings."""
        tests = load("pettingzoo.test", ADAPTER, INSTALL)
        fresh = open_world(*self._arguments, image=False)
        test = tests.parallel_api_test if fresh.simultaneous else tests.api_test
        failure: list[str] = []
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("always")
            try:
                test(fresh.raw, num_cycles=100)
            except Exception as error:  # a stranger's world under a stranger's test
                failure.append(f"{type(error).__name__}: {error}")
        close(fresh.raw)
        return [*failure, *dict.fromkeys(str(warning.message) for warning in caught)]

    def close(self) -> None:
        """Close the world."""
        close(self._world.raw)
        self._due = {}

    def _settled(self, views: dict[str, WorldView]) -> dict[str, WorldView]:
        """Let opponents move until one of the policy's agents is to act or all of them have ended."""
        given: dict[str, WorldView] = {}
        while True:
            given |= {name: view for name, view in views.items() if name in self._episodes}
            self._due = {name: view for name, view in views.items() if not view.turn.ended}
            ended = [name for name in self.agents if self._episodes[name].ended or _ended(given.get(name))]
            if any(name in self._due for name in self.agents) or len(ended) == len(self.agents):
                return given
            if not self._due:
                raise RuntimeError(f"env {ADAPTER}: nobody is to act, and not all have ended")
            views = self._world.step({name: self._opponent_move(name) for name in self._due})

    def _opponent_move(self, name: str) -> Any:
        return self._opponents[name](self._due[name], self._rngs[name])

    def _move(self, name: str, text: str) -> Any:
        """The action of a text, legal if illegal ones are answered.

        Raises:
            NoAction: if there is none.
        """
        action = self._episodes[name].read(text)
        grammar, mask = self._grammars[name], self._due[name].mask
        if self._answers_illegal and not legal(grammar, mask, action):
            raise NoAction(f"that move is not legal now; legal: {_legal_moves(grammar, mask)}")
        return action


class OneAgent:
    """A world of which one agent is left to the policy, as an `Env`."""

    def __init__(self, world: PettingZoo) -> None:
        self._world = world
        (self.agent,) = world.agents
        self.system_prompt = world.system_prompts[self.agent]

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode."""
        return self._world.reset(task, seed)[self.agent]

    def step(self, action: str) -> StepResult:
        """Move; then the others do, until it is this agent's turn again."""
        return self._world.step({self.agent: action})[self.agent]

    def random_action(self, rng: np.random.Generator) -> str:
        """Any action that is legal now."""
        return self._world.random_action(self.agent, rng)

    def findings(self) -> list[str]:
        """What PettingZoo's own API test says."""
        return self._world.findings()

    def close(self) -> None:
        """Close the world."""
        self._world.close()


def _ended(view: WorldView | None) -> bool:
    return view is not None and view.turn.ended


def _known(by_agent: Mapping[str, str], everyone: Mapping[str, Any], option: str) -> Mapping[str, str]:
    for name in by_agent:
        if name not in everyone:
            raise ConfigError(
                f"env {ADAPTER}: {option}: no agent is named {name!r}; {', '.join(everyone)} are"
            )
    return by_agent


def _of(actions: Any, name: str, everyone: Mapping[str, Any]) -> Any:
    """The declaration for an agent: one by names of agents, or one for all."""
    by_agent = isinstance(actions, Mapping) and actions and actions.keys() <= everyone.keys()
    return actions.get(name) if by_agent else actions


def _legal_moves(grammar: Grammar, mask: Any) -> str:
    """The legal moves as they are written, the first twenty."""
    actions = legal_actions(grammar, mask)
    words = [word for action in actions if (word := grammar.write(action)) is not None]
    return ", ".join(words[:20]) + (" …" if len(words) > 20 else "")
