"""The 8- and the 15-puzzle: slide tiles into the gap until they are in order."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, get_args

import numpy as np

from vlrl.envs.visual.drawing.draw import COLOURS, WHITE, Sketch, shade
from vlrl.envs.visual.drawing.scenery import scenery
from vlrl.envs.visual.drawing.tiles import DIRECTIONS, MARGIN, plain
from vlrl.envs.visual.games.moves import Game, MovesEnv, Status
from vlrl.errors import ConfigError
from vlrl.types import ByteArray

State = tuple[int, ...]  # the tile in each place, row by row; 0 is the gap
Style = Literal["numbers", "image"]

LEVELS = ((3, 4), (3, 9), (3, 20), (4, 12), (4, 26))
"""(tiles along each side, random moves from the solution), by level."""


class SlidingPuzzle(Game[State]):
    """Tiles 1, 2, 3 … row by row with the gap in the last place are the solution.

    A move names the direction in which a tile slides into the gap.
    """

    moves = tuple(DIRECTIONS)

    def __init__(self, side: int, start: State, image: ByteArray | None = None) -> None:
        """Lay out the tiles.

        Args:
            side: tiles along each side.
            start: the tiles; half of all arrangements cannot be solved.
            image: [size, size, 3] uint8, drawn on the tiles instead of their numbers.
        """
        self.side, self.start, self.image = side, start, image
        self.solution: State = (*range(1, side * side), 0)
        self._best: dict[State, str] = {}
        self.max_steps = 2 * self._learn(start) + 10

    def move(self, state: State, move: str) -> State:
        """Slide the tile that lies on the other side of the gap."""
        down, right = DIRECTIONS[move]
        gap = state.index(0)
        row, column = gap // self.side - down, gap % self.side - right
        if not (0 <= row < self.side and 0 <= column < self.side):
            return state
        tile = row * self.side + column
        tiles = list(state)
        tiles[gap], tiles[tile] = tiles[tile], 0
        return tuple(tiles)

    def status(self, state: State) -> Status:
        """Won when the tiles are in order."""
        return "won" if state == self.solution else "open"

    def best(self, state: State) -> str:
        """The next move of a solution."""
        if state not in self._best:
            self._learn(state)
        return self._best[state]

    def _learn(self, state: State) -> int:
        moves = self._solve(state)
        for move in moves:
            self._best[state] = move
            state = self.move(state, move)
        return len(moves)

    def _solve(self, start: State) -> list[str]:
        """A* with tiles' distances counted double: not always the shortest way, but soon found."""
        came: dict[State, tuple[State, str]] = {}
        costs, edge = {start: 0}, [(0, 0, start)]
        while edge:
            _, _, state = heapq.heappop(edge)
            if state == self.solution:
                break
            for move in self.moves:
                after, cost = self.move(state, move), costs[state] + 1
                if cost < costs.get(after, 1 << 30):
                    costs[after], came[after] = cost, (state, move)
                    heapq.heappush(edge, (cost + 2 * self._distance(after), len(came), after))
        moves: list[str] = []
        state = self.solution
        while state != start:
            state, move = came[state]
            moves.append(move)
        return moves[::-1]

    def _distance(self, state: State) -> int:
        side, far = self.side, 0
        for place, tile in enumerate(state):
            if tile:
                far += abs(place // side - (tile - 1) // side) + abs(place % side - (tile - 1) % side)
        return far

    def draw(self, state: State, size: int) -> ByteArray:
        """The tiles in a dark frame."""
        tile = (size - size // 16) // self.side
        margin = (size - tile * self.side) // 2
        pixels = plain(size, MARGIN)
        gap = max(1, tile // 32)
        for place, number in enumerate(state):
            if not number:
                continue
            y, x = margin + place // self.side * tile, margin + place % self.side * tile
            face = _face(number, tile) if self.image is None else self._part(number, tile)
            pixels[y + gap : y + tile - gap, x + gap : x + tile - gap] = face[
                gap : tile - gap, gap : tile - gap
            ]
        return pixels

    def _part(self, number: int, tile: int) -> ByteArray:
        assert self.image is not None
        row, column = divmod(number - 1, self.side)
        return self.image[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]


class SlidingPuzzleEnv(MovesEnv[State]):
    """3×3 tiles at levels 1 to 3, 4×4 at 4 and 5, scrambled from the solution by 4 to 26 random slides.

    Reward 1 when the tiles are in order, 0 otherwise, less the penalties. An episode is cut at twice the
    solution and ten moves more, in which random slides solve 7 % of level 1 and almost none above.
    """

    name = "visual/sliding_puzzle"
    goal = "Put the tiles in order."

    def __init__(self, level: int | Sequence[int] = 1, style: Style = "numbers", **options: Any) -> None:
        """Choose the tiles.

        Args:
            level: of difficulty, or [lowest, highest].
            style: what the tiles show: "numbers", or parts of an "image".
            options: of every game; see MovesEnv and EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        if style not in get_args(Style):
            raise ConfigError(f"env {self.name}: option style={style!r} is not one of {get_args(Style)}")
        self.style = style
        numbers = style == "numbers"
        shown = "numbered tiles" if numbers else "a picture cut into tiles"
        order = "the numbers run row by row from the upper left" if numbers else "the picture is whole"
        self.rules = (
            f"You see {shown} and one dark gap in a square frame. A move slides the tile beside the gap into "
            f"it, in the direction you name. Slide until {order}, with the gap in the lower right."
        )
        super().__init__(level, **options)

    def make(self, rng: np.random.Generator, level: int) -> SlidingPuzzle:
        """Scramble the solution, never undoing the last slide."""
        side, num_slides = LEVELS[level - 1]
        state, last = (*range(1, side * side), 0), -1
        for _ in range(num_slides):
            gap = state.index(0)
            beside = [i for i in range(side * side) if _touch(i, gap, side) and state[i] != last]
            place = beside[int(rng.integers(len(beside)))]
            tiles, last = list(state), state[place]
            tiles[gap], tiles[place] = last, 0
            state = tuple(tiles)
        image = None
        if self.style == "image":
            image = scenery(rng, (self.image_size - self.image_size // 16) // side * side, (side, side))
        return SlidingPuzzle(side, state, image)


def _touch(one: int, other: int, side: int) -> bool:
    return abs(one // side - other // side) + abs(one % side - other % side) == 1


@cache
def _face(number: int, side: int) -> ByteArray:
    image = Sketch(side, MARGIN, 100, 100)
    colour = shade(COLOURS["blue"], 0.1)
    image.rectangle((2, 2, 98, 98), colour, shade(colour, 0.35), 4, radius=12)
    image.text((50, 50), str(number), 54, WHITE)
    return image.finish()
