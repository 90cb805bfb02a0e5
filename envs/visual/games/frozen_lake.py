"""FrozenLake by Gymnasium's rules: walk over the ice to the flag without falling into a hole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.envs.visual.drawing import tiles
from vlrl.envs.visual.drawing.tiles import DIRECTIONS, board
from vlrl.envs.visual.games.moves import Game, MovesEnv, Status
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed
from vlrl.types import ByteArray

MOVES = tuple(DIRECTIONS)
FROZEN_SHARE = 0.8
"""Chance of a field to be ice, as in Gymnasium's random maps."""

State = tuple[int, int]  # (field, number of slips drawn)


class Lake(Game[State]):
    """A square map; the start is its first field and the flag its last one.

    Moves past the edge stay. On slippery ice the figure goes where it is told or to either side of that
    direction, each with probability 1/3.
    """

    moves = MOVES

    def __init__(self, holes: npt.NDArray[np.bool_], slip_seed: int | None = None) -> None:
        """Lay out a map.

        Args:
            holes: [size, size] bool, free at its first and last field.
            slip_seed: of the slips; None if the ice is not slippery.
        """
        self.holes, self.size, self.slip_seed = holes.ravel(), len(holes), slip_seed
        self.start: State = (0, 0)
        self.max_steps = (8 if slip_seed is None else 25) * self.size

    def move(self, state: State, move: str) -> State:
        """One field, or none at the edge."""
        field, num_slips = state
        direction = MOVES.index(move)
        if self.slip_seed is None:
            return self._next[field][direction], num_slips
        return self._next[field][(direction + self.slip(num_slips)) % 4], num_slips + 1

    def slip(self, number: int) -> int:
        """How far the `number`-th move turns aside: -1, 0 or 1 quarters."""
        draw = np.random.default_rng(derive_seed("slip", self.slip_seed or 0, number)).integers(-1, 2)
        return int(draw)

    def status(self, state: State) -> Status:
        """Won at the flag, lost in a hole."""
        if self.holes[state[0]]:
            return "lost"
        return "won" if state[0] == self.size**2 - 1 else "open"

    def best(self, state: State) -> str:
        """The move with the best chance to arrive; where nothing slips, the shortest way."""
        return MOVES[self._policy[state[0]]]

    def key(self, state: State) -> str:
        """The field, row by row from 0."""
        return str(state[0])

    def draw(self, state: State, size: int) -> ByteArray:
        """The map, with the figure."""
        last = self.size**2 - 1
        ground = [tiles.hole if hole else tiles.ice for hole in self.holes.tolist()]
        ground[last] = tiles.ice_flag
        here = {"lost": tiles.drowned, "won": tiles.arrived, "open": tiles.skater}
        ground[state[0]] = here[self.status(state)]
        return board([ground[i : i + self.size] for i in range(0, last + 1, self.size)], size)

    @cached_property
    def _next(self) -> list[list[int]]:
        """[field][direction] → field."""
        return [
            [
                min(max(row + down, 0), self.size - 1) * self.size
                + min(max(column + right, 0), self.size - 1)
                for down, right in DIRECTIONS.values()
            ]
            for row in range(self.size)
            for column in range(self.size)
        ]

    @cached_property
    def _policy(self) -> list[int]:
        """[field] → direction, by value iteration; each step on the way makes arriving worth less."""
        turns = (0,) if self.slip_seed is None else (-1, 0, 1)
        reached = np.array([np.roll(self._next, -turn, axis=1) for turn in turns])
        values, before = np.zeros(self.size**2), np.ones(self.size**2)
        while np.abs(values - before).max() > 1e-9:
            before = values
            values = np.where(self.holes, 0.0, 0.99 * before[reached].mean(0).max(1))
            values[-1] = 1.0
        best: list[int] = values[reached].mean(0).argmax(1).tolist()
        return best


class FrozenLake(MovesEnv[State]):
    """A random map that has a path, of side 4 to 8 by level.

    Reward 1 at the flag, 0 otherwise, less the penalties. A random walk arrives in 8 % of the episodes at
    level 1, in 3 % at level 2 and in 1 % or less above.
    """

    name = "visual/frozen_lake"
    rules = (
        "The picture shows a frozen lake from above: ice, holes of dark water, you in orange, a green flag. "
        "Walk to the flag, one field a move, and step into no hole."
    )
    goal = "Walk to the flag."
    lost_text = "You fell into a hole."

    def __init__(
        self,
        level: int | Sequence[int] = 1,
        size: int | None = None,
        is_slippery: bool = False,
        **options: Any,
    ) -> None:
        """Choose the maps.

        Args:
            level: the side of the map less 3.
            size: side of the map instead of the level's.
            is_slippery: moves go aside with probability 2/3, as in Gymnasium; then the best play does not
                always arrive.
            options: of every game; see MovesEnv and EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, **options)
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 2 <= size <= 16):
            raise ConfigError(f"env {self.name}: option size={size!r}; give a whole number from 2 to 16")
        if not isinstance(is_slippery, bool):
            raise ConfigError(f"env {self.name}: option is_slippery={is_slippery!r}; give true or false")
        self.size, self.is_slippery = size, is_slippery
        if is_slippery:
            self.system_prompt += " The ice is slippery: you may slide to either side of where you go."

    def make(self, rng: np.random.Generator, level: int) -> Lake:
        """Draw maps until one has a path."""
        size = self.size or level + 3
        slip_seed = int(rng.integers(2**62)) if self.is_slippery else None
        while True:
            holes = rng.random((size, size)) >= FROZEN_SHARE
            holes[0, 0] = holes[-1, -1] = False
            if has_path(holes):
                return Lake(holes, slip_seed)


def has_path(holes: npt.NDArray[np.bool_]) -> bool:
    """Whether the last field can be reached from the first one."""
    size = len(holes)
    seen, edge = {(0, 0)}, [(0, 0)]
    while edge:
        row, column = edge.pop()
        for down, right in DIRECTIONS.values():
            place = (row + down, column + right)
            inside = 0 <= place[0] < size and 0 <= place[1] < size
            if inside and place not in seen and not holes[place]:
                seen.add(place)
                edge.append(place)
    return (size - 1, size - 1) in seen
