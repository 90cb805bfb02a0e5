"""An environment as a person plays it: the episode so far, what may be done next, what it came to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlrl.check.envs.episodes import step_problems
from vlrl.check.envs.observed import problems_of
from vlrl.environment.plain import PlainEnv
from vlrl.errors import DataError, NoOracle
from vlrl.protocols import Observation, StepResult
from vlrl.rounding import summed

TAG = re.compile(r"<(\w+)>.*</\1>\s*", re.DOTALL)

ARROWS = {
    "ArrowUp": ("up", "north"),
    "ArrowDown": ("down", "south"),
    "ArrowLeft": ("left", "west"),
    "ArrowRight": ("right", "east"),
}
"""The keys of a browser, and the actions that they may stand for."""

NUM_SAMPLED_ACTIONS = 64
"""Enough to miss one of four equally likely actions once in 10^7 games."""


@dataclass(frozen=True, slots=True)
class PlayedMove:
    """One turn: the action, its result, and the environment's state before it, if it can be had."""

    action: str
    result: StepResult
    before: Any


class PlayedGame:
    """One episode after the other. Not for several threads at once.

    Attributes:
        env: the environment.
        seed: of the present episode.
        first: what it showed first.
        moves: made so far.
        tag: that actions are written in, such as "action"; "" if that is not known.
        arrows: which action an arrow key stands for, of those that the environment's random agent takes.
    """

    def __init__(self, name: str, options: Mapping[str, Any], task: Mapping[str, Any], seed: int) -> None:
        """Make the environment and begin an episode.

        Raises:
            ConfigError: for an unknown name, a wrong option or a wrong task.
        """
        self.name, self.options, self.task = name, dict(options), dict(task)
        self.env = PlainEnv(name, options)
        self.can_undo = self.env.has("snapshot") and self.env.has("restore")
        self.start(seed)
        self.tag = self._tag()
        self.arrows = self._arrows()

    def start(self, seed: int) -> None:
        """Begin the episode of a seed.

        Raises:
            DataError: if what the environment shows is not an observation.
        """
        first = self.env.reset(self.task, seed)
        self._refuse(problems_of(first))
        self.seed, self.first, self.moves = seed, first, list[PlayedMove]()

    def act(self, action: str) -> None:
        """Make a move.

        Raises:
            DataError: if the episode is over, or what the environment returns is not a result.
        """
        if self.is_over:
            raise DataError("the episode is over; begin a new one")
        before = self.env.call("snapshot") if self.can_undo else None
        result = self.env.step(action)
        self._refuse(step_problems(result))
        self.moves.append(PlayedMove(action, result, before))

    def undo(self) -> None:
        """Take the last move back.

        Raises:
            DataError: if there is none, or the environment cannot.
        """
        if not self.can_undo or not self.moves:
            raise DataError("there is no move to take back, or the environment has no snapshot and restore")
        self.env.call("restore", self.moves.pop().before)

    def hint(self) -> str:
        """The text of a right next action.

        Raises:
            DataError: if the environment has no oracle, or none for this task, or the episode is over.
        """
        if self.is_over or not self.env.has("oracle"):
            raise DataError("there is no hint: the episode is over, or the environment has no oracle")
        try:
            return str(self.env.call("oracle"))
        except NoOracle as error:
            raise DataError(f"there is no hint: {error}") from error

    @property
    def observation(self) -> Observation:
        """What is seen now."""
        return self.moves[-1].result.observation if self.moves else self.first

    @property
    def is_over(self) -> bool:
        """True if the environment has ended the episode."""
        return bool(self.moves) and (self.moves[-1].result.terminated or self.moves[-1].result.truncated)

    @property
    def total(self) -> float:
        """Sum of the rewards."""
        return summed(move.result.reward for move in self.moves)

    @property
    def success(self) -> bool | None:
        """What the environment says of it; None before the end, and if it says nothing."""
        found = self.moves[-1].result.info.get("success") if self.is_over else None
        return None if found is None else bool(found)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _tag(self) -> str:
        """The tag of the environment's own actions, so that a person need not type it."""
        if self.env.has("random_action"):
            sample = str(self.env.call("random_action", np.random.default_rng(0)))
        else:
            try:
                sample = self.hint()
            except DataError:
                return ""
        match = TAG.fullmatch(sample)
        return match[1] if match else ""

    def _arrows(self) -> dict[str, str]:
        if not self.env.has("random_action"):
            return {}
        rng = np.random.default_rng(0)
        texts = {str(self.env.call("random_action", rng)) for _ in range(NUM_SAMPLED_ACTIONS)}
        actions = {re.sub(r"</?\w+>", "", text).strip().lower() for text in texts}
        return {key: word for key, words in ARROWS.items() for word in words if word in actions}

    def _refuse(self, problems: list[str]) -> None:
        if problems:
            raise DataError(f"env {self.name}: {problems[0]}; vlrl env check says more")
