"""How a page is shown and waited for, and the scripts that see to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from vlrl.envs.gui.screen import Form


@dataclass(frozen=True, slots=True)
class Look:
    """How a page is shown and waited for.

    Attributes:
        size: (width, height) in CSS pixels.
        scale: pixels of the picture to a CSS pixel.
        form: a mouse or fingers.
        step_ms: of the page's own time that passes with every action.
        settle_ms: most of it, while something on the page moves or loads.
        limit_s: of real time for an action or a reset.
        shown: (width, height) of the part at the top left that the picture has; None for all.
    """

    size: tuple[int, int]
    scale: float = 1.0
    form: Form = "desktop"
    step_ms: int = 48
    settle_ms: int = 640
    limit_s: float = 30.0
    shown: tuple[int, int] | None = None

    @property
    def picture_size(self) -> tuple[int, int]:
        """(width, height) of the picture in pixels."""
        width, height = self.shown or self.size
        return int(width * self.scale), int(height * self.scale)


@cache
def script(name: str) -> str:
    """A script of this folder."""
    return (files(__package__) / name).read_text(encoding="utf-8")
