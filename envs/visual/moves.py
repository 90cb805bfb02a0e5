"""Games played by named moves: a picture of the board, a move as text, the next picture.

An environment is a `Game` (one board: its rules as functions of a state, its picture, its solver) and a
`MovesEnv` that draws one from the seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from vlrl.envs.action_text import CLOSING, OPENING, last_action
from vlrl.envs.visual.base import GeneratedEnv
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult
from vlrl.types import ByteArray

State = TypeVar("State", bound=Hashable)
Status = Literal["open", "won", "lost"]


class Game(ABC, Generic[State]):
    """One board. States are plain values; nothing here changes after construction but caches.

    Attributes:
        start: the state an episode begins in.
        max_steps: moves after which an episode is cut, unless the option says otherwise.
        moves: every move as it is written.
    """

    start: State
    max_steps: int
    moves: Sequence[str]

    def read(self, move: str) -> str | None:
        """The move that a text stands for (lower case, single spaces), None if it is none."""
        return move if move in self.moves else None

    def random_move(self, rng: np.random.Generator) -> str:
        """Any move, evenly."""
        return self.moves[int(rng.integers(len(self.moves)))]

    @abstractmethod
    def move(self, state: State, move: str) -> State:
        """The state after a move; the same state if it is not possible there."""

    @abstractmethod
    def status(self, state: State) -> Status:
        """Whether the game goes on."""

    @abstractmethod
    def best(self, state: State) -> str:
        """A move of a solution; any move where there is none."""

    @abstractmethod
    def draw(self, state: State, size: int) -> ByteArray:
        """The board as [size, size, 3] uint8."""

    def key(self, state: State) -> str:
        """Names what a state shows."""
        return repr(state)


class MovesEnv(GeneratedEnv, ABC, Generic[State]):
    """Plays a game: reward 1 when it is solved, else 0, less the penalties.

    A well-formed move that is not possible (a wall) changes nothing and counts as a step. A text that is no
    move is answered with what is wrong, changes nothing and counts as a step too.
    """

    rules: str
    """What is shown and what is to be done, for the system prompt."""
    goal: str
    """In one line, for the first observation."""
    form: str = "up, down, left, right"
    """The moves, in words."""
    example: str = "up"
    lost_text: str = "Lost."

    def __init__(
        self,
        level: int | Sequence[int] = 1,
        image_size: int = 224,
        max_steps: int | None = None,
        max_moves: int = 1,
        step_penalty: float = 0.0,
        invalid_penalty: float = 0.0,
    ) -> None:
        """Choose difficulty and rewards.

        Args:
            level: of difficulty, or [lowest, highest].
            image_size: side of the pictures in pixels.
            max_steps: moves before the episode is truncated; None takes the board's own.
            max_moves: most moves in one message, separated by commas.
            step_penalty: taken from the reward for each move.
            invalid_penalty: taken from the reward for each text that is no move.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, image_size)
        for option, value in (("max_steps", max_steps), ("max_moves", max_moves)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigError(f"env {self.name}: option {option}={value!r}; give a whole number from 1")
        for option, penalty in (("step_penalty", step_penalty), ("invalid_penalty", invalid_penalty)):
            if not (isinstance(penalty, int | float) and 0 <= penalty < float("inf")):
                raise ConfigError(f"env {self.name}: option {option}={penalty!r}; give a number from 0")
        self.max_steps, self.max_moves = max_steps, max_moves
        self.step_penalty, self.invalid_penalty = float(step_penalty), float(invalid_penalty)
        several = f" Up to {max_moves} moves fit in one action, separated by commas." if max_moves > 1 else ""
        self.system_prompt = (
            f"{self.rules} Moves: {self.form}. You may think first; then end with your move, "
            f"such as {OPENING}{self.example}{CLOSING}.{several}"
        )
        self._game: Game[State] | None = None

    @abstractmethod
    def make(self, rng: np.random.Generator, level: int) -> Game[State]:
        """Draw a board of this level; all that is random comes from `rng`."""

    @property
    def game(self) -> Game[State]:
        """The board in play.

        Raises:
            RuntimeError: before `reset` and after `close`.
        """
        if self._game is None:
            raise RuntimeError(f"env {self.name}: there is no board; call reset first")
        return self._game

    @property
    def state(self) -> State:
        """The board's present state."""
        return self._state

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Draw a board and show it.

        Args:
            task: {} or {"level": a level or [lowest, highest]}.
            seed: of everything that is drawn.

        Raises:
            ConfigError: for an unknown key or a level out of range.
        """
        rng, level = self.begin(task, seed)
        self._game, self._place = self.make(rng, level), (level, seed)
        self._state, self._num_steps, self._ended = self.game.start, 0, False
        return self._observe(self.goal)

    def step(self, action: str) -> StepResult:
        """Move; info has success, invalid, state, level and num_steps."""
        game = self.game
        if self._ended:
            raise RuntimeError(f"env {self.name}: the episode is over; call reset first")
        limit = self.max_steps or game.max_steps
        read = self._read(action)
        if isinstance(read, str):
            self._num_steps, reward, said = self._num_steps + 1, -self.invalid_penalty, read
        else:
            reward, said = self._play(read, limit)
        status = game.status(self._state)
        terminated, truncated = status != "open", status == "open" and self._num_steps >= limit
        self._ended = terminated or truncated
        info = {
            "success": status == "won",
            "invalid": isinstance(read, str),
            "state": game.key(self._state),
            "level": self._place[0],
            "num_steps": self._num_steps,
        }
        if self._ended:
            said = {"won": "Solved.", "lost": self.lost_text, "open": "No moves are left."}[status]
        return StepResult(self._observe(said), reward, terminated, truncated, info)

    def _read(self, action: str) -> list[str] | str:
        """The moves of a model's text, or what is wrong with it."""
        example = f"{OPENING}{self.example}{CLOSING}"
        text = last_action(action)
        if text is None:
            return f"There is no action; end with your move, such as {example}."
        moves = [self.game.read(" ".join(part.lower().split())) for part in text.split(",", self.max_moves)]
        if len(moves) > self.max_moves:
            return f"Too many moves; at most {self.max_moves} in one action, such as {example}."
        known = [move for move in moves if move is not None]
        if len(known) < len(moves):
            return f"That is no move; moves: {self.form}, such as {example}."
        return known

    def _play(self, moves: Sequence[str], limit: int) -> tuple[float, str]:
        """Move until the game ends: (reward, what to say of it)."""
        reward, said = 0.0, "Next move?"
        for move in moves:
            before, self._state = self._state, self.game.move(self._state, move)
            self._num_steps += 1
            said = "Nothing moved." if self._state == before else "Next move?"
            reward += (self.game.status(self._state) == "won") - self.step_penalty
            if self.game.status(self._state) != "open" or self._num_steps >= limit:
                break
        return reward, said

    def _observe(self, text: str) -> Observation:
        return Observation(text, [self.game.draw(self._state, self.image_size)], summary=self.goal)

    def oracle(self) -> str:
        """The next move of a solution."""
        return f"{OPENING}{self.game.best(self._state)}{CLOSING}"

    def random_action(self, rng: np.random.Generator) -> str:
        """Any one move, evenly."""
        return f"{OPENING}{self.game.random_move(rng)}{CLOSING}"

    def snapshot(self) -> dict[str, Any]:
        """The episode as plain values; any environment with the same options can go on from it."""
        level, seed = self._place
        return {
            "level": level,
            "seed": seed,
            "state": self._state,
            "num_steps": self._num_steps,
            "ended": self._ended,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        place = (state["level"], state["seed"])
        if self._game is None or place != self._place:
            rng, level = self.begin({"level": place[0]}, place[1])
            self._game, self._place = self.make(rng, level), place
        self._state, self._num_steps, self._ended = state["state"], state["num_steps"], state["ended"]

    def close(self) -> None:
        """Forget the board."""
        self._game = None
