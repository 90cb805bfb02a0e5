"""Games played by named moves: an image of the board, a move as text, the next image.

An environment is a `Game` (one board: its rules as functions of a state, its image, its solver) and a
`MovesEnv` that draws one from the seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from vlrl.envs.action_text import CLOSING, OPENING, last_action
from vlrl.envs.visual.episodes import EpisodeEnv
from vlrl.protocols import Observation, StepResult
from vlrl.types import ByteArray

State = TypeVar("State", bound=Hashable)
Status = Literal["open", "won", "lost"]

NEXT = "Next move?"


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


class MovesEnv(EpisodeEnv[Game[State], State], ABC, Generic[State]):
    """Plays a game: reward 1 when it is solved, else 0, less the penalties.

    A well-formed move that is not possible (a wall) changes nothing and counts as a step. A text that is no
    move is answered with what is wrong, changes nothing and counts as a step too.
    """

    rules: str
    """What is shown and what is to be done, for the system prompt."""
    form: str = "up, down, left, right"
    """The moves, in words."""
    example: str = "up"
    lost_text: str = "Lost."

    def __init__(self, level: int | Sequence[int] = 1, max_moves: int = 1, **options: Any) -> None:
        """Choose difficulty and rewards.

        Args:
            level: of difficulty, or [lowest, highest].
            max_moves: most moves in one message, separated by commas; each is a step.
            options: of every episode; see EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, **options)
        self.check_count("max_moves", max_moves)
        self.max_moves = max_moves
        several = f" Up to {max_moves} moves fit in one action, separated by commas." if max_moves > 1 else ""
        self.system_prompt = (
            f"{self.rules} Moves: {self.form}. You may think first; then end with your move, "
            f"such as {OPENING}{self.example}{CLOSING}.{several}"
        )

    def first(self, world: Game[State]) -> State:
        """The board's start."""
        return world.start

    def show(self) -> Observation:
        """The board, and the goal."""
        return self._observe(self.goal)

    def step(self, action: str) -> StepResult:
        """Move; info has success, invalid, state, level and num_steps."""
        self.check_open()
        game = self.world
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

    def oracle(self) -> str:
        """The next move of a solution."""
        return f"{OPENING}{self.world.best(self.state)}{CLOSING}"

    def random_action(self, rng: np.random.Generator) -> str:
        """Any one move, evenly."""
        return f"{OPENING}{self.world.random_move(rng)}{CLOSING}"

    def _read(self, action: str) -> list[str] | str:
        """The moves of a model's text, or what is wrong with it."""
        example = f"{OPENING}{self.example}{CLOSING}"
        text = last_action(action)
        if text is None:
            return f"There is no action; end with your move, such as {example}."
        moves = [self.world.read(" ".join(part.lower().split())) for part in text.split(",", self.max_moves)]
        if len(moves) > self.max_moves:
            return f"Too many moves; at most {self.max_moves} in one action, such as {example}."
        known = [move for move in moves if move is not None]
        if len(known) < len(moves):
            return f"That is no move; moves: {self.form}, such as {example}."
        return known

    def _play(self, moves: Sequence[str], limit: int) -> tuple[float, str]:
        """Move until the game ends: (reward, what to say of it)."""
        game, reward, said = self.world, 0.0, NEXT
        for move in moves:
            before, self._state = self._state, game.move(self._state, move)
            self._num_steps += 1
            said = "Nothing moved." if self._state == before else NEXT
            reward += (game.status(self._state) == "won") - self.step_penalty
            if game.status(self._state) != "open" or self._num_steps >= limit:
                break
        return reward, said

    def _observe(self, text: str) -> Observation:
        return Observation(text, [self.world.draw(self._state, self.image_size)], summary=self.goal)
