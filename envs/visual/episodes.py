"""What environments of several steps share: limits, penalties, and an episode as a value."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from vlrl.envs.visual.base import GeneratedEnv
from vlrl.errors import ConfigError
from vlrl.protocols import Observation

World = TypeVar("World")
State = TypeVar("State")


class EpisodeEnv(GeneratedEnv, ABC, Generic[World, State]):
    """An episode is a world, drawn from the seed and never changed, and a state, which is a plain value."""

    goal: str
    """What is to be done, in one line: for the first observation, and for one who has forgotten the rest."""

    def __init__(
        self,
        level: int | Sequence[int] = 1,
        image_size: int = 224,
        max_steps: int | None = None,
        step_penalty: float = 0.0,
        invalid_penalty: float = 0.0,
    ) -> None:
        """Choose difficulty and rewards.

        Args:
            level: of difficulty, or [lowest, highest].
            image_size: side of the images in pixels.
            max_steps: steps before the episode is truncated; None takes the world's own.
            step_penalty: taken from the reward for each step.
            invalid_penalty: taken from the reward for a text that is not an action, instead of step_penalty.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, image_size)
        if max_steps is not None:
            self.check_count("max_steps", max_steps)
        self.max_steps = max_steps
        self.step_penalty = self._penalty("step_penalty", step_penalty)
        self.invalid_penalty = self._penalty("invalid_penalty", invalid_penalty)
        self._world: World | None = None

    @abstractmethod
    def make(self, rng: np.random.Generator, level: int) -> World:
        """Draw a world of this level; all that is random comes from `rng`."""

    @abstractmethod
    def first(self, world: World) -> State:
        """The state an episode begins in."""

    @abstractmethod
    def show(self) -> Observation:
        """What is seen at the beginning."""

    @property
    def world(self) -> World:
        """What was drawn.

        Raises:
            RuntimeError: before `reset` and after `close`.
        """
        if self._world is None:
            raise RuntimeError(f"env {self.name}: there is no episode; call reset first")
        return self._world

    @property
    def state(self) -> State:
        """The present state.

        Raises:
            RuntimeError: before `reset` and after `close`.
        """
        _ = self.world
        return self._state

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Draw a world and show it.

        Args:
            task: {} or {"level": a level or [lowest, highest]}.
            seed: of everything that is drawn.

        Raises:
            ConfigError: for an unknown key or a level out of range.
        """
        rng, level = self.begin(task, seed)
        self._world, self._place = self.make(rng, level), (level, seed)
        self._state, self._num_steps, self._ended = self.first(self.world), 0, False
        return self.show()

    def snapshot(self) -> dict[str, Any]:
        """The episode as plain values; any environment with the same options can go on from it."""
        level, seed = self._place
        return {
            "level": level,
            "seed": seed,
            "state": self.state,
            "num_steps": self._num_steps,
            "ended": self._ended,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot, or one read back from JSON; another world is drawn again from its seed."""
        place = (state["level"], state["seed"])
        if self._world is None or place != self._place:
            rng, level = self.begin({"level": place[0]}, place[1])
            self._world, self._place = self.make(rng, level), place
        self._state = _frozen(state["state"])
        self._num_steps, self._ended = state["num_steps"], state["ended"]

    def close(self) -> None:
        """Forget the episode."""
        self._world = None

    def check_open(self) -> None:
        """Refuse a step that belongs to no episode.

        Raises:
            RuntimeError: before `reset`, after the end and after `close`.
        """
        if self._world is None or self._ended:
            raise RuntimeError(f"env {self.name}: no episode is under way; call reset first")

    def check_count(self, option: str, value: Any, least: int = 1) -> None:
        """Refuse an option that is not a whole number from `least`.

        Raises:
            ConfigError: naming it.
        """
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"env {self.name}: option {option}={value!r}; give a whole number from {least}")

    def _penalty(self, option: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ConfigError(f"env {self.name}: option {option}={value!r}; give a number from 0")
        return float(value)


def _frozen(value: Any) -> Any:
    """A value with its lists, which JSON makes of tuples, as tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list | tuple) else value
