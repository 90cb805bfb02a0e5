"""An image that one draws on."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.types import ByteArray


@dataclass(slots=True, init=False)
class Canvas(Widget):
    """An image of the app's own, of fixed size: Stroke(id, path) when one clicks or draws on it.

    Attributes:
        paint_by: a function at the top of a module that takes (width, height, image) and gives
            [height, width, 3] uint8; called once for an image.
        image: a value that can be hashed: what is on it.
        size: (width, height) in pixels.
    """

    paint_by: Callable[[int, int, Any], ByteArray]
    image: Hashable
    size: tuple[int, int]
    role: ClassVar[str] = "img"

    def __init__(
        self,
        id: str,
        name: str,
        paint_by: Callable[[int, int, Any], ByteArray],
        image: Hashable,
        size: tuple[int, int],
    ) -> None:
        """Say what it is called and what is on it."""
        Widget.__init__(self, id=id, name=name)
        self.paint_by, self.image, self.size = paint_by, image, size

    def natural(self, look: Look) -> tuple[int, int]:
        """Its size."""
        return self.size

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The image, in the top left corner of the box."""
        whole = (box[0], box[1], box[0] + self.size[0], box[1] + self.size[1])
        items.append((*whole, clip, self.paint_by, (self.image,)))
