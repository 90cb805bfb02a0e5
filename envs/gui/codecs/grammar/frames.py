"""Where a codec's coordinates lie, and how a place on the screen is written in them.

A coordinate is a position on a continuous axis (vlrl.coordinates), so a pixel is written as the
whole number nearest to its middle; of two equally near, the lower. Where the frame is not coarser than the
screen, that number lies within the pixel and reads back as the same pixel: a pixel is then at least 1 wide,
half-open at its far edge, and its middle is at most half a number away. Where the frame is coarser, what is
read back is off by at most half a pixel and half of the frame's grain.
"""

from __future__ import annotations

import math
from typing import get_args

from vlrl.coordinates import CoordinateFrame, frame_extent
from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.codecs.codec import View

FRAME_NAMES: tuple[str, ...] = get_args(CoordinateFrame)

_THOUSANDTHS = 1000
_TIE = 1e-9  # Far above the rounding of a middle's arithmetic, far below the distance between two middles.


class Grid:
    """The numbers of a frame over what the model saw."""

    def __init__(self, frame: CoordinateFrame, view: View) -> None:
        self.view, self._scale = view, _THOUSANDTHS if frame == "unit" else 1
        width, height = frame_extent(frame, view.canvas)
        self._extent = width * self._scale, height * self._scale

    def pixel(self, x: float, y: float) -> Pixel:
        """The pixel that holds a written place.

        Raises:
            ValueError: for a place outside the image.
        """
        if self._scale > 1:
            x, y = round(x * self._scale, 6), round(y * self._scale, 6)
        return self.view.pixel(x, y, self._extent)

    def written(self, pixel: Pixel) -> tuple[float, float]:
        """What a model writes for a pixel: whole numbers, thousandths in the frame `unit`."""
        x, y = (math.ceil(middle - 0.5 - _TIE) for middle in self.view.place(pixel, self._extent))
        return (x / self._scale, y / self._scale) if self._scale > 1 else (x, y)

    def mark(self, number: int) -> tuple[float, float]:
        """What a model would write for the place of a mark.

        Raises:
            ValueError: for a number that no mark has.
        """
        marks = self.view.marks
        if not 1 <= number <= len(marks):
            known = f"the screen has 1 to {len(marks)}" if marks else "the screen shows none"
            raise ValueError(f"there is no mark {number}; {known}")
        return self.written(marks[number - 1].point)

    def is_pointer(self, pixel: Pixel | None) -> bool:
        """True if the pointer is where a place would put it: for grammars that act where the pointer is."""
        return pixel is None or self.view.pointer in (pixel, self.pixel(*self.written(pixel)))


def shown_extent(frame: CoordinateFrame, screen: tuple[int, int]) -> tuple[float, float]:
    """(largest x, largest y) for instructions.

    Args:
        frame: a codec's.
        screen: (width, height) of the screenshot as the model is given it.
    """
    match frame:
        case "per_1000":
            return 1000, 1000
        case "per_999":
            return 999, 999
        case "unit":
            return 1, 1
    return screen
