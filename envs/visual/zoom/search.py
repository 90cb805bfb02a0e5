"""Visual search: one badge among hundreds, its letter too small to read without the zoom tool."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

from vlrl.envs.visual.answers import Choice
from vlrl.envs.visual.drawing.badges import SHAPES, paint_badge
from vlrl.envs.visual.drawing.draw import COLOURS, INK, PAPER, WHITE, Sketch
from vlrl.envs.visual.drawing.tiles import plain
from vlrl.envs.visual.zoom.tool import Scene, ZoomEnv
from vlrl.errors import ConfigError
from vlrl.types import ByteArray

BADGE_COLOURS = ("red", "orange", "green", "cyan", "blue", "purple", "pink", "gray")
LETTERS = "BCDEFGHJKLMNPRSTUVXYZ"
"""Without those that are taken for others (I, O, Q, W), and A, which is taken for an article."""

SIDE = 8
"""Of a badge, in pixels of the image as shown; its letter is a third as high."""
CELL = 10
"""Of the grid that badges are strewn over, in pixels of the image as shown."""

LEVELS = ((0.15, 0.0), (0.3, 0.02), (0.45, 0.08), (0.6, 0.2), (0.8, 0.5))
"""(share of the cells with a badge, share of those badges in the colour that is asked for), by level."""


class Search(ZoomEnv):
    """Which letter is on the only badge of its shape and colour?

    At 224 pixels the images hold 72 to 387 badges by level. At level 1 no other badge has its colour; at
    higher levels more and more have, in other shapes, which can be distinguished only when enlarged.
    Reward 1 for the letter, 0 otherwise, less the penalties; a guess is right once in 21 times (0.048).
    """

    name = "visual/search"
    rules = "You see many badges, each with a letter; find the one that is asked for and read its letter."
    goal = "Find the badge."

    def __init__(self, level: int | Sequence[int] = 1, **options: Any) -> None:
        """Choose the images.

        Args:
            level: of difficulty, or [lowest, highest].
            options: of every image with a zoom tool; see ZoomEnv and EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, **options)
        if self.grid and self.image_size // self.grid < 2 * SIDE:
            raise ConfigError(
                f"env {self.name}: option grid={self.grid}: its cells are too small for badges at "
                f"image_size={self.image_size}; take at most {self.image_size // (2 * SIDE)}"
            )

    def make(self, rng: np.random.Generator, level: int) -> Scene:
        """Strew badges; the first one is the one that is asked for."""
        corners = self._strew(rng, LEVELS[level - 1][0])
        badges = _kinds(rng, len(corners), LEVELS[level - 1][1])
        letters = [LETTERS[i] for i in rng.integers(0, len(LETTERS), len(corners))]
        side = SIDE * self.scale
        pixels = plain(self.image_size * self.scale, PAPER)
        for (colour, shape), letter, (y, x) in zip(badges, letters, corners, strict=True):
            pixels[y : y + side, x : x + side] = badge(shape, colour, letter, side)
        (colour, shape), (y, x) = badges[0], corners[0]
        return Scene(
            image=Image.fromarray(pixels),
            question=f"Which letter is on the {colour} {shape}? Answer with the letter.",
            answer=Choice(letters[0], tuple(LETTERS)),
            target=(x, y, x + side, y + side),
        )

    def _strew(self, rng: np.random.Generator, share: float) -> list[list[int]]:
        """(y, x) of the badges' corners in the large image, each in its own cell of a grid."""
        columns = self.image_size // CELL
        cells = rng.permutation(columns**2)[: round(share * columns**2)]
        room = (CELL - SIDE) * self.scale
        shifts = rng.integers(0, room + 1, (len(cells), 2))
        corners = np.stack([cells // columns, cells % columns], 1) * CELL * self.scale + shifts
        if self.grid:  # none across two cells of the tool's
            near, far = (
                (edge * self.grid) // (self.image_size * self.scale)
                for edge in (corners, corners + SIDE * self.scale - 1)
            )
            corners = corners[(near == far).all(1)]
        placed: list[list[int]] = corners.tolist()
        return placed


def _kinds(rng: np.random.Generator, num_badges: int, share_alike: float) -> list[tuple[str, str]]:
    """(colour, shape) of every badge: no other is like the first, a share of them have its colour."""
    colour, shape = str(rng.choice(BADGE_COLOURS)), str(rng.choice(SHAPES))
    other_colours = [other for other in BADGE_COLOURS if other != colour]
    other_shapes = [other for other in SHAPES if other != shape]
    kinds = [(colour, shape)]
    for alike, pick, form in rng.random((num_badges - 1, 3)).tolist():
        if alike < share_alike:
            kinds.append((colour, other_shapes[int(form * len(other_shapes))]))
        else:
            kinds.append((other_colours[int(pick * len(other_colours))], SHAPES[int(form * len(SHAPES))]))
    return kinds


@cache
def badge(shape: str, colour: str, letter: str, side: int) -> ByteArray:
    """A badge, [side, side, 3] uint8, read-only."""
    image = Sketch(side, PAPER, 100, 100)
    fill = COLOURS[colour]
    paint_badge(image, shape, fill)
    low = {"triangle": 64, "star": 54}.get(shape, 50)
    image.text((50, low), letter, 44, INK if colour in ("orange", "cyan", "pink") else WHITE)
    pixels = image.finish()
    pixels.setflags(write=False)
    return pixels
