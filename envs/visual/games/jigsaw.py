"""Jigsaw: an image's pieces lie in wrong places; put them in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from vlrl.envs.visual.drawing.draw import INK, WHITE, Sketch
from vlrl.envs.visual.drawing.scenery import scenery
from vlrl.envs.visual.games.moves import Game, MovesEnv, Status
from vlrl.errors import ConfigError
from vlrl.types import ByteArray

State = tuple[int, ...]  # the piece in each place, row by row from 0
Mode = Literal["swap", "order"]

LEVELS = ((2, 2), (2, 3), (3, 3), (3, 4), (4, 4))
"""(rows, columns) of pieces, by level."""


class Jigsaw(Game[State]):
    """Pieces in a grid; a move is "swap A B", two places counted from 1."""

    def __init__(self, shape: tuple[int, int], start: State, image: ByteArray) -> None:
        """Lay out the pieces.

        Args:
            shape: rows and columns.
            start: the pieces.
            image: [size, size, 3] uint8.
        """
        self.shape, self.start, self.image = shape, start, image
        self.solution: State = tuple(range(len(start)))
        self.max_steps = len(start)
        self.moves = [f"swap {one} {other}" for one, other in combinations(range(1, len(start) + 1), 2)]

    def read(self, move: str) -> str | None:
        """Either place may be named first."""
        words = move.split(" ")
        return super().read(move) or super().read(" ".join([words[0], *reversed(words[1:])]))

    def move(self, state: State, move: str) -> State:
        """Swap two pieces."""
        one, other = (int(word) - 1 for word in move.split(" ")[1:])
        pieces = list(state)
        pieces[one], pieces[other] = pieces[other], pieces[one]
        return tuple(pieces)

    def status(self, state: State) -> Status:
        """Won when every piece is in its place."""
        return "won" if state == self.solution else "open"

    def best(self, state: State) -> str:
        """Bring the first wrong place its piece."""
        wrong = next(place for place, piece in enumerate(state) if piece != place)
        return f"swap {wrong + 1} {state.index(wrong) + 1}"

    def draw(self, state: State, size: int) -> ByteArray:
        """The pieces with thin seams; each place has its number in a corner."""
        rows, columns = self.shape
        high, wide = size // rows, size // columns
        pixels = np.full((size, size, 3), 255, np.uint8)
        for place, piece in enumerate(state):
            y, x = place // columns * high, place % columns * wide
            from_y, from_x = piece // columns * high, piece % columns * wide
            part = self.image[from_y + 1 : from_y + high - 1, from_x + 1 : from_x + wide - 1]
            pixels[y + 1 : y + high - 1, x + 1 : x + wide - 1] = part
            badge = _badge(place + 1, max(14, size // 16))
            pixels[y + 2 : y + 2 + len(badge), x + 2 : x + 2 + len(badge)] = badge
        return pixels


class JigsawInOneGo(Jigsaw):
    """One move says it all: for each place in turn, the place in which its piece lies now."""

    def __init__(self, shape: tuple[int, int], start: State, image: ByteArray) -> None:
        """See Jigsaw."""
        super().__init__(shape, start, image)
        self.max_steps = 1
        self._places = sorted(str(place + 1) for place in self.solution)

    def read(self, move: str) -> str | None:
        """All places, each once, with spaces between."""
        return move if sorted(move.split(" ")) == self._places else None

    def random_move(self, rng: np.random.Generator) -> str:
        """Any order, evenly."""
        return " ".join(str(place + 1) for place in rng.permutation(len(self.start)))

    def move(self, state: State, move: str) -> State:
        """Put all pieces elsewhere at once."""
        return tuple(state[int(word) - 1] for word in move.split(" "))

    def best(self, state: State) -> str:
        """The solution."""
        return " ".join(str(state.index(piece) + 1) for piece in self.solution)


class JigsawEnv(MovesEnv[State]):
    """A landscape in 4, 6, 9, 12 or 16 pieces by level; every piece looks different.

    Reward 1 when the image is whole, 0 otherwise, less the penalties. With mode "swap", in as many swaps as
    there are pieces, random swaps succeed in 16 % at level 1 and 1 % at level 2; with mode "order" a
    guess is right once in n! times: 4 % at level 1.
    """

    name = "visual/jigsaw"
    goal = "Put the pieces in order."

    def __init__(self, level: int | Sequence[int] = 1, mode: Mode = "swap", **options: Any) -> None:
        """Choose the pieces.

        Args:
            level: of difficulty, or [lowest, highest].
            mode: "swap" two places a move, or name the whole "order" in one action.
            options: of every game; see MovesEnv and EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        if mode not in get_args(Mode):
            raise ConfigError(f"env {self.name}: option mode={mode!r} is not one of {get_args(Mode)}")
        self.mode = mode
        self.rules = (
            "You see the pieces of a landscape, cut by straight lines and put into wrong places. The places "
            "are numbered row by row from the upper left; each shows its number in a corner."
        )
        if mode == "swap":
            self.rules += " Swap the pieces of two places until the picture is whole."
            self.form, self.example = "swap A B, with the numbers of two places", "swap 1 4"
        else:
            self.rules += (
                " Say for each place, from the first to the last, in which place its piece lies now."
            )
            self.form, self.example = "the numbers of all places, with spaces between", "3 1 4 2"
        super().__init__(level, **options)

    def make(self, rng: np.random.Generator, level: int) -> Jigsaw:
        """Shuffle a new landscape."""
        rows, columns = LEVELS[level - 1]
        start = tuple(range(rows * columns))
        while start == tuple(range(rows * columns)):
            start = tuple(rng.permutation(rows * columns).tolist())
        game = Jigsaw if self.mode == "swap" else JigsawInOneGo
        return game((rows, columns), start, scenery(rng, self.image_size, (rows, columns)))


@cache
def _badge(number: int, side: int) -> ByteArray:
    image = Sketch(side, WHITE, 100, 100)
    image.rectangle((0, 0, 100, 100), WHITE, INK, 6)
    image.text((50, 50), str(number), 80)
    return image.finish()
