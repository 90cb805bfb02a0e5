"""Text that is broken into lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import plate
from vlrl.envs.gui.emu.input.text import Spans, wrap
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.envs.gui.emu.widgets.basic import surface


@dataclass(slots=True, init=False)
class Paragraph(Widget):
    """Lines of text, as many as it needs at a width of its own, which does not change with the window's."""

    room: int
    role: ClassVar[str] = "text"
    is_solid: ClassVar[bool] = False

    def __init__(self, text: str, width: int) -> None:
        """Say what it says, and how wide it is in pixels of font size 13."""
        Widget.__init__(self, name=text)
        self.room = width

    def spans(self, look: Look) -> Spans:
        """Where the lines begin and end."""
        return wrap(self.name, self.room * look.font.size // 13, look.font)

    def natural(self, look: Look) -> tuple[int, int]:
        """All lines'."""
        return self.room * look.font.size // 13, len(self.spans(look)) * look.line + 2

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """Line by line."""
        look, behind = view.look, surface(view)
        for index, (first, last) in enumerate(self.spans(look)):
            top = box[1] + 1 + index * look.line
            text = self.name[first:last].strip()
            values = (behind, behind, None, 0, text, look.font, look.palette.text, "left")
            items.append((box[0], top, box[2], top + look.line, clip, plate, values))
