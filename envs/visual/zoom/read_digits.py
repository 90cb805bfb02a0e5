"""Zoom and read: a number too small to read on a plate in a large image; the simplest task of two turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from vlrl.envs.visual.answers import Number
from vlrl.envs.visual.drawing.draw import COLOURS, INK, WHITE, Sketch, shade
from vlrl.envs.visual.drawing.tiles import plain
from vlrl.envs.visual.zoom.tool import Scene, ZoomEnv
from vlrl.errors import ConfigError
from vlrl.types import ByteArray

GROUNDS = ("gray", "blue", "green", "brown", "purple")


class ReadDigits(ZoomEnv):
    """A number of 1 to 5 digits, by level.

    Reward 1 for the number, 0 otherwise, less the penalties; a guess is right once in 10 times at level 1, in
    90 at level 2, and so on by tens. The right way is always one zoom and the answer.
    """

    name = "visual/read_digits"
    rules = "You see a plate with a number; read the number."
    goal = "Read the number."

    def __init__(self, level: int | Sequence[int] = 1, digit_height: int = 3, **options: Any) -> None:
        """Choose the images.

        Args:
            level: number of digits, or [fewest, most].
            digit_height: of the digits in pixels of the image as shown; 3 cannot be read.
            options: of every image with a zoom tool; see ZoomEnv and EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, **options)
        self.check_count("digit_height", digit_height)
        self.digit_height = digit_height
        self._plate_size(self.levels[1])

    def make(self, rng: np.random.Generator, level: int) -> Scene:
        """Put a plate somewhere; with a grid, in the middle of a cell."""
        least = 10 ** (level - 1) if level > 1 else 0
        number = int(rng.integers(least, 10**level))
        side = self.image_size * self.scale
        wide, high = self._plate_size(level)
        if self.grid:
            row, column = rng.integers(0, self.grid, 2).tolist()
            x = (2 * column + 1) * side // (2 * self.grid) - wide // 2
            y = (2 * row + 1) * side // (2 * self.grid) - high // 2
        else:
            x, y = int(rng.integers(0, side - wide + 1)), int(rng.integers(0, side - high + 1))
        ground = COLOURS[GROUNDS[int(rng.integers(len(GROUNDS)))]]
        pixels, high_board = plain(side, shade(ground, -0.3)), side // 8
        gap = plain(side, shade(ground, -0.6))[: max(1, side // 400)]
        for edge in range(0, side - high_board + 1, high_board):  # a wall of boards
            pixels[edge : edge + len(gap)] = gap
        pixels[y : y + high, x : x + wide] = self._plate(str(number), wide, high)
        return Scene(
            image=Image.fromarray(pixels),
            question="Which number is on the plate?",
            answer=Number(number, least, 10**level - 1),
            target=(x, y, x + wide, y + high),
        )

    def _plate_size(self, num_digits: int) -> tuple[int, int]:
        """(width, height) in pixels of the large image."""
        digit = self.digit_height * self.scale
        wide, high = round(digit * (0.85 * num_digits + 0.9)), 2 * digit
        room = self.image_size * self.scale // max(self.grid, 1)
        if wide > room or high > room:
            raise ConfigError(
                f"env {self.name}: a plate with {num_digits} digits of digit_height={self.digit_height} "
                f"does not fit into a cell of grid={self.grid} at image_size={self.image_size}; make "
                "digit_height or grid smaller, or image_size larger"
            )
        return wide, high

    def _plate(self, text: str, wide: int, high: int) -> ByteArray:
        image = Sketch(wide, WHITE, wide, high)
        image.rectangle((0, 0, wide, high), WHITE, COLOURS["yellow"], high // 12)
        # A digit is about 0.72 of its font's size high.
        image.text((wide / 2, high / 2), text, self.digit_height * self.scale / 0.72, INK)
        return image.finish()
