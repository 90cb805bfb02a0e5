"""The contract of codecs: a grammar in which a model writes its actions, and the frame of its coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Action, Pixel
from vlrl.envs.gui.marks import ScreenMark
from vlrl.envs.gui.screen import Form


class ActionError(Exception):
    """A text that is not an action.

    Attributes:
        kind: "no_action", "syntax", "unknown_action", "missing_argument", "bad_argument" or "outside".
        span: (start, end) of what is wrong, in characters of the model's text.
    """

    def __init__(self, kind: str, reason: str, span: tuple[int, int]) -> None:
        super().__init__(reason)
        self.kind, self.span = kind, span


@dataclass(frozen=True, slots=True)
class View:
    """What the model saw when it wrote its action.

    Attributes:
        canvas: the screenshot, as it is (original_size) and as it was given to the model (size).
        pointer: where the pointer was.
        marks: the widgets that had numbers, from 1.
    """

    canvas: Canvas
    pointer: Pixel
    marks: Sequence[ScreenMark] = ()

    @property
    def screen(self) -> tuple[int, int]:
        """(width, height) of the screen."""
        height, width = self.canvas.original_size
        return width, height

    def pixel(self, x: float, y: float, extent: tuple[float, float]) -> Pixel:
        """The pixel that holds a place in a frame whose far edges are `extent`; an edge is the last pixel.

        Raises:
            ValueError: for a place outside the frame, or no finite number.
        """
        if not (0 <= x <= extent[0] and 0 <= y <= extent[1]):
            raise ValueError(
                f"({x:g}, {y:g}) lies outside the image, 0 to {extent[0]:g} and 0 to {extent[1]:g}"
            )
        width, height = self.screen
        # Multiplied first: of whole numbers the quotient is then right to the last bit, so that 1 in a frame
        # of 49 is pixel 1 of 49. 1 / 49 * 49 is a little less than 1.
        column, row = math.floor(x * width / extent[0]), math.floor(y * height / extent[1])
        return min(column, width - 1), min(row, height - 1)

    def place(self, pixel: Pixel, extent: tuple[float, float]) -> tuple[float, float]:
        """A pixel's middle in a frame whose far edges are `extent`."""
        width, height = self.screen
        return (pixel[0] + 0.5) / width * extent[0], (pixel[1] + 0.5) / height * extent[1]


class Codec(Protocol):
    """One grammar. Without state; what is written is parsed, never evaluated."""

    name: str

    @property
    def mark_example(self) -> str:
        """An action that names a mark; empty if the grammar cannot."""
        ...

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """The system message, which describes the screen and how to act.

        Args:
            screen: (width, height) of the screenshot as the model is given it.
            form: which of its grammars.
        """
        ...

    def parse(self, text: str, view: View) -> Action:
        """The action in a model's text.

        Raises:
            ActionError: if there is none.
        """
        ...

    def place(self, pixel: Pixel, view: View) -> str:
        """A place as the grammar counts: "120, 240"."""
        ...

    def format(self, action: Action, view: View) -> str:
        """An action as the model would write it: for oracles and demonstrations.

        Raises:
            ActionError: kind "unknown_action" for one that the grammar cannot say.
        """
        ...
