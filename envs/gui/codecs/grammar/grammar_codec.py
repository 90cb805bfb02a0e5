"""What codecs share: a name, a frame, and the refusal of an action that the grammar cannot say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from vlrl.coordinates import CoordinateFrame
from vlrl.envs.gui.actions import Action, Pixel
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.grammar.frames import Grid
from vlrl.envs.gui.screen import Form


class GrammarCodec(ABC):
    """A `Codec` whose places are read and written on the `Grid` of its frame."""

    mark_example: ClassVar[str] = ""

    def __init__(self, name: str, frame: CoordinateFrame) -> None:
        self.name, self._frame = name, frame

    @abstractmethod
    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""

    @abstractmethod
    def _read(self, text: str, grid: Grid) -> Action:
        """The action in a model's text, or ActionError."""

    @abstractmethod
    def _written(self, action: Action, grid: Grid) -> str | None:
        """An action as the model would write it; None if the grammar cannot say it."""

    def parse(self, text: str, view: View) -> Action:
        """See `Codec`."""
        return self._read(text, Grid(self._frame, view))

    def place(self, pixel: Pixel, view: View) -> str:
        """See `Codec`."""
        return ", ".join(f"{number:g}" for number in Grid(self._frame, view).written(pixel))

    def format(self, action: Action, view: View) -> str:
        """See `Codec`."""
        written = self._written(action, Grid(self._frame, view))
        if written is None:
            raise ActionError("unknown_action", f"{self.name} cannot say {action}", (0, 0))
        return written
