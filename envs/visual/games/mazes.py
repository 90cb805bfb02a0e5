"""Mazes: walk from where you stand to the flag."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from vlrl.envs.visual.drawing.draw import INK
from vlrl.envs.visual.drawing.tiles import DIRECTIONS, GROUND, figure, pennant, plain, sprite
from vlrl.envs.visual.games.moves import Game, MovesEnv, Status
from vlrl.errors import ConfigError
from vlrl.types import ByteArray

Field = tuple[int, int]  # (row, column)
Doors = frozenset[tuple[Field, Field]]

SIDES = (4, 6, 8, 10, 13)
"""Fields along each side, by level."""


class Maze(Game[Field]):
    """A square of fields; neighbours are connected where there is a door between them."""

    moves = tuple(DIRECTIONS)

    def __init__(self, side: int, doors: Doors, start: Field) -> None:
        """Put the flag where it is farthest from the start.

        Args:
            side: fields along each side.
            doors: pairs of neighbours without a wall between them, both ways round.
            start: where the figure stands.
        """
        self.side, self.doors, self.start = side, doors, start
        far = self.distances(start)
        self.flag = max(far, key=lambda field: (far[field], field))
        self.max_steps = 2 * far[self.flag] + 10
        self._backgrounds: dict[int, ByteArray] = {}

    def move(self, state: Field, move: str) -> Field:
        """One field, or none at a wall."""
        there = _beside(state, move)
        return there if (state, there) in self.doors else state

    def status(self, state: Field) -> Status:
        """Won at the flag."""
        return "won" if state == self.flag else "open"

    def best(self, state: Field) -> str:
        """Move along a shortest way."""
        ways = [move for move in self.moves if (state, _beside(state, move)) in self.doors]
        return min(ways, key=lambda move: self._to_flag[_beside(state, move)])

    def distances(self, goal: Field) -> dict[Field, int]:
        """Moves from every field to one of them."""
        found, edge = {goal: 0}, deque([goal])
        while edge:
            field = edge.popleft()
            for move in self.moves:
                there = _beside(field, move)
                if there not in found and (field, there) in self.doors:
                    found[there] = found[field] + 1
                    edge.append(there)
        return found

    @cached_property
    def _to_flag(self) -> dict[Field, int]:
        return self.distances(self.flag)

    def draw(self, state: Field, size: int) -> ByteArray:
        """Walls as lines; the figure and the flag stand in their fields."""
        field = (size - size // 16) // self.side
        margin = (size - field * self.side) // 2
        if size not in self._backgrounds:
            self._backgrounds[size] = self._walls(size, field, margin)
        pixels = self._backgrounds[size].copy()
        inset = 1 + field // 10
        inner = field - 2 * inset
        for place, painter in ((self.flag, pennant), (state, figure)):
            y, x = (margin + index * field + inset for index in place)
            pixels[y : y + inner, x : x + inner] = sprite(painter, inner)
        return pixels

    def _walls(self, size: int, field: int, margin: int) -> ByteArray:
        pixels = plain(size, GROUND)
        thick = 1 + field // 12  # to either side of the line between two fields
        for row in range(self.side + 1):
            for column in range(self.side + 1):
                y, x = margin + row * field, margin + column * field
                if column < self.side and ((row - 1, column), (row, column)) not in self.doors:
                    pixels[y - thick : y + thick, x - thick : x + field + thick] = INK
                if row < self.side and ((row, column - 1), (row, column)) not in self.doors:
                    pixels[y - thick : y + field + thick, x - thick : x + thick] = INK
        return pixels


class Mazes(MovesEnv[Field]):
    """A random maze of side 4, 6, 8, 10 or 13 by level; the flag is where the way is longest.

    Reward 1 at the flag, 0 otherwise, less the penalties. An episode is cut at twice the shortest way and ten
    moves more, in which a random walk arrives in 1 % of the smallest mazes (in 10 % if they are braided)
    and in none of the others.
    """

    name = "visual/mazes"
    rules = (
        "The picture shows a maze from above: black walls, you in blue, a green flag. "
        "Walk to the flag, one field a move."
    )
    goal = "Walk to the flag."

    def __init__(self, level: int | Sequence[int] = 1, braid: float = 0.0, **options: Any) -> None:
        """Choose the mazes.

        Args:
            level: of difficulty, or [lowest, highest].
            braid: share of dead ends that are opened, so that there is more than one way: 0 for perfect
                mazes, 1 for mazes without dead ends.
            options: of every game; see MovesEnv and EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, **options)
        if isinstance(braid, bool) or not isinstance(braid, int | float) or not 0 <= braid <= 1:
            raise ConfigError(f"env {self.name}: option braid={braid!r}; give a number from 0 to 1")
        self.braid = float(braid)

    def make(self, rng: np.random.Generator, level: int) -> Maze:
        """Dig a perfect maze, open dead ends, choose a start."""
        side = SIDES[level - 1]
        doors = _dig(rng, side)
        _open_dead_ends(rng, side, doors, self.braid)
        start = (int(rng.integers(side)), int(rng.integers(side)))
        return Maze(side, frozenset(doors), start)


def _dig(rng: np.random.Generator, side: int) -> set[tuple[Field, Field]]:
    """Doors of a perfect maze, by a random walk that turns back at dead ends."""
    doors: set[tuple[Field, Field]] = set()
    # Where the walk would rather go from each field.
    wishes = rng.random((side, side, 4)).argsort(axis=2).tolist()
    path = [(0, 0)]
    seen = {(0, 0)}
    while path:
        field = path[-1]
        wish = wishes[field[0]][field[1]]
        if not wish:
            path.pop()
            continue
        there = _beside(field, Maze.moves[wish.pop()])
        if there not in seen and 0 <= there[0] < side and 0 <= there[1] < side:
            doors |= {(field, there), (there, field)}
            seen.add(there)
            path.append(there)
    return doors


def _open_dead_ends(
    rng: np.random.Generator, side: int, doors: set[tuple[Field, Field]], share: float
) -> None:
    for row in range(side):
        for column in range(side):
            field = (row, column)
            around = [_beside(field, move) for move in Maze.moves]
            inside = [place for place in around if 0 <= place[0] < side and 0 <= place[1] < side]
            closed = [place for place in inside if (field, place) not in doors]
            draw, which = rng.random(), rng.integers(len(closed)) if closed else 0
            if len(inside) - len(closed) == 1 and draw < share:
                doors |= {(field, closed[which]), (closed[which], field)}


def _beside(field: Field, move: str) -> Field:
    down, right = DIRECTIONS[move]
    return field[0] + down, field[1] + right
