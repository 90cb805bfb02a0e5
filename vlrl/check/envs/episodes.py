"""Episodes of the environment under check: played, recorded, and watched for calls that do not return."""

from __future__ import annotations

import faulthandler
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vlrl.check.envs.observed import problems_of
from vlrl.environment.observe import digest_of
from vlrl.environment.plain import PlainEnv
from vlrl.protocols import Observation, StepResult
from vlrl.rounding import summed
from vlrl.seeds import derive_seed

Policy = Callable[["Watched | PlainEnv", np.random.Generator], str]


@dataclass(frozen=True, slots=True)
class Request:
    """Which environment is checked, and how thoroughly.

    Attributes:
        name: of the environment.
        options: its own.
        task: given to every reset.
        seed: of everything random here.
        episodes: seeds tried.
        max_turns: longest episode played.
        timeout_s: longest call.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    episodes: int = 20
    max_turns: int = 200
    timeout_s: float = 30.0

    def episode_seed(self, index: int) -> int:
        """The seed of episode `index`; small, as some libraries take no more than 32 bits."""
        return derive_seed("env check", self.seed, index) % 2**31


class BrokenContract(Exception):
    """The environment returned what no environment may; the message is for its author."""


class Watched:
    """An environment each of whose calls must return in time, or the process ends with the place printed."""

    def __init__(self, request: Request) -> None:
        self._timeout_s = request.timeout_s
        with self.within(request.timeout_s):
            self._env = PlainEnv(request.name, request.options)

    @property
    def plain(self) -> PlainEnv:
        """The environment, unwatched."""
        return self._env

    def has(self, method: str) -> bool:
        """True if it has one of the optional methods."""
        return self._env.has(method)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call any method."""
        with self.within(self._timeout_s):
            return self._env.call(method, *arguments)

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode.

        Raises:
            BrokenContract: if what it returns is not an observation.
        """
        observation = self.call("reset", task, seed)
        if problems := problems_of(observation):
            raise BrokenContract(f"reset's observation: {problems[0]}")
        shown: Observation = observation
        return shown

    def step(self, action: str) -> StepResult:
        """Apply an action.

        Raises:
            BrokenContract: if what it returns is not a step's result.
        """
        result = self.call("step", action)
        if problems := step_problems(result):
            raise BrokenContract(f"step's result: {problems[0]}")
        applied: StepResult = result
        low, high = getattr(self._env.env, "reward_range", (-np.inf, np.inf))
        if not low <= applied.reward <= high:
            raise BrokenContract(f"reward {applied.reward:g} is not within its reward_range, {low} to {high}")
        return applied

    def close(self) -> None:
        """Close it."""
        with self.within(self._timeout_s):
            self._env.close()

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """End the process, the place printed, if what is inside takes longer."""
        faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


@dataclass(slots=True)
class Played:
    """An episode's record.

    Attributes:
        digests: of the first observation and of every one that followed.
        rewards: of each turn.
        states: what info["state"] said of each turn.
        invalid: turns whose text was not an action.
        terminated: by the environment, as its end.
        truncated: by the environment, before its end.
        success: info["success"] of the last turn; None if it says nothing.
    """

    digests: list[str]
    rewards: list[float] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    invalid: int = 0
    terminated: bool = False
    truncated: bool = False
    success: bool | None = None

    @property
    def ended(self) -> bool:
        """True if the environment ended it."""
        return self.terminated or self.truncated

    @property
    def solved(self) -> bool:
        """What info["success"] says; without it, that the rewards sum to more than 0."""
        return summed(self.rewards) > 0 if self.success is None else self.success


def play(env: Watched, request: Request, index: int, policy: Policy) -> Played:
    """Play episode `index` to its end, or for max_turns."""
    rng = np.random.default_rng(derive_seed("env check", "policy", request.seed, index))
    played = Played([digest_of(env.reset(request.task, request.episode_seed(index)))])
    while not played.ended and len(played.rewards) < request.max_turns:
        result = env.step(policy(env, rng))
        played.digests.append(digest_of(result.observation))
        played.rewards.append(float(result.reward))
        played.states.append(str(result.info.get("state", "")))
        played.invalid += bool(result.info.get("invalid", False))
        played.terminated, played.truncated = bool(result.terminated), bool(result.truncated)
        success = result.info.get("success")
        played.success = None if success is None else bool(success)
    return played


def step_problems(result: Any) -> list[str]:
    """What is wrong with what `step` returned."""
    if not isinstance(result, StepResult):
        return [f"it is a {type(result).__name__}; return vlrl.protocols.StepResult"]
    found = [f"observation: {problem}" for problem in problems_of(result.observation)]
    number = isinstance(result.reward, int | float | np.integer | np.floating)
    if not number or isinstance(result.reward, bool):
        found.append(f"reward is {result.reward!r}; give a float")
    elif not np.isfinite(result.reward):
        found.append(f"reward is {result.reward}; give a finite number")
    for name in ("terminated", "truncated"):
        if not isinstance(getattr(result, name), bool | np.bool_):
            found.append(f"{name} is {getattr(result, name)!r}; give True or False")
    info: Any = result.info
    if not isinstance(info, Mapping):
        return [*found, f"info is a {type(info).__name__}; give a mapping"]
    kinds: Mapping[str, tuple[type, ...]]
    kinds = {"success": (bool, np.bool_), "invalid": (bool, np.bool_), "state": (str,)}
    for name, allowed in kinds.items():
        if name in info and not isinstance(info[name], allowed):
            found.append(f"info[{name!r}] is {info[name]!r}; give a {allowed[0].__name__}")
    return found


def random_policy(env: Watched | PlainEnv, rng: np.random.Generator) -> str:
    """The environment's own blind agent."""
    return str(env.call("random_action", rng))


def oracle_policy(env: Watched | PlainEnv, rng: np.random.Generator) -> str:
    """The environment's own right next action."""
    return str(env.call("oracle"))


def junk_policy(env: Watched | PlainEnv, rng: np.random.Generator) -> str:
    """Text that is not an action of anything."""
    return "I do not know."


def usual_policy(env: Watched | PlainEnv) -> Policy:
    """Whatever moves the environment: its blind agent, else its oracle, else nothing sensible."""
    if env.has("random_action"):
        return random_policy
    return oracle_policy if env.has("oracle") else junk_policy
