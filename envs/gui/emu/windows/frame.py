"""What is around every window: its border, its title, its buttons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.input.events import Command
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut, outline

EDGE = 4
"""Pixels of a frame at which a window is resized."""


@dataclass(slots=True)
class Frame(Widget):
    """A window's frame around what its app built."""

    content: Widget
    icon: str
    is_dialog: bool
    is_maximized: bool
    role: ClassVar[str] = ""

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The title bar with its buttons, then the content."""
        look = view.look
        view.add(self, box, clip)
        is_full = look.form == "mobile" and not self.is_dialog
        edge, high = (0, look.row + 4) if is_full else (EDGE - 1, look.title)
        title = (box[0] + 1, box[1] + 1, box[2] - 1, box[1] + high)
        TitleBar(id="window.title", name=self.name, icon=self.icon).place(view, title, clip)
        names = ["close"] if self.is_dialog or is_full else ["minimize", "maximize", "close"]
        side = high - 6
        at_left = look.title_buttons == "left" and not is_full
        x = title[0] + 4 if at_left else title[2] - 3 - len(names) * (side + 3)
        for name in reversed(names) if at_left else names:
            shown = "restore" if name == "maximize" and self.is_maximized else name
            button = TitleButton(id=f"window.{name}", name=tr(shown.capitalize()), icon=shown)
            button.press = Command(button.id)
            button.place(view, (x, title[1] + 2, x + side, title[1] + 2 + side), clip)
            x += side + 3
        inside = (box[0] + edge, box[1] + high, box[2] - edge, box[3] - edge)
        self.content.place(view, inside, cut(inside, clip))

    def sides_at(self, x: int, y: int, box: Box) -> str:
        """The edges under a place, by their first letters; near a corner both."""
        near, far = EDGE, 3 * EDGE
        found = {"l": x - box[0], "r": box[2] - 1 - x, "t": y - box[1], "b": box[3] - 1 - y}
        if min(found.values()) >= near:
            return ""
        return "".join(side for side, distance in found.items() if distance < far)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The border and the paper."""
        colours = view.look.palette
        border = mix(colours.border, colours.text, 45 if view.is_active else 15)
        if view.look.form == "mobile" and not self.is_dialog:
            border = colours.window
        items.append((*box, clip, fill, (colours.window,)))
        outline(items, box, clip, border)  # apart: coming to the front repaints the edges, not the paper


@dataclass(slots=True, kw_only=True)
class TitleBar(Widget):
    """What a window is moved by."""

    icon: str
    role: ClassVar[str] = "heading"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The app's icon and the title."""
        look, colours = view.look, view.look.palette
        inside = colours.title if view.is_active else colours.title_off
        ink = colours.title_text if view.is_active else mix(colours.text, colours.title_off, 40)
        items.append((*box, clip, fill, (inside,)))
        side, middle = look.line, (box[1] + box[3]) // 2
        high = box[3] - box[1]
        left = (
            box[0] + look.unit + (3 * high if look.title_buttons == "left" and look.form == "desktop" else 0)
        )
        image = (left, middle - side // 2, left + side, middle - side // 2 + side)
        items.append((*image, clip, icon_painter, (self.icon, ink, inside)))
        text = (
            image[2] + look.unit,
            box[1] + 2,
            max(image[2] + look.unit, box[2] - 3 * high),
            box[3] - 2,
        )
        items.append((*text, clip, plate, (inside, inside, None, 0, self.name, look.bold, ink, "left")))


@dataclass(slots=True, kw_only=True)
class TitleButton(Widget):
    """Minimise, maximise, close."""

    icon: str
    role: ClassVar[str] = "button"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The image."""
        colours = view.look.palette
        behind = colours.title if view.is_active else colours.title_off
        ink = colours.title_text if view.is_active else mix(colours.text, colours.title_off, 40)
        inside = mix(behind, ink, 9)
        items.append((*box, clip, plate, (behind, inside, None, min(4, colours.round))))
        edge = max(2, (box[2] - box[0]) // 6)
        inner = (box[0] + edge, box[1] + edge, box[2] - edge, box[3] - edge)
        items.append((*inner, clip, icon_painter, (self.icon, ink, inside)))
