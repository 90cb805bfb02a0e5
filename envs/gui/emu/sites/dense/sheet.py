"""How a page of the dense web is laid out: columns as far as there is room, and what lies over the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import dim, fill, plate
from vlrl.envs.gui.emu.drawing.theme import TONES
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut
from vlrl.envs.gui.emu.widgets.basic import Divider
from vlrl.envs.gui.emu.widgets.containers import Column, Row, ScrollArea, bar_width, place_bar

Place = Literal["below", "middle"]
DIALOG_WIDTH = 330
"""Of what lies in the middle of a page, in pixels of font size 13."""


@dataclass(slots=True, init=False)
class Overlay(Column):
    """What lies over a page until it is put away.

    Attributes:
        at: below in the page, as wide as that; or in the middle, with the page dimmed.
        way_out: id of the button that puts it away with the least trouble.
    """

    at: Place
    way_out: str
    role: ClassVar[str] = "dialog"
    is_solid: ClassVar[bool] = True
    covers: ClassVar[bool] = True

    def __init__(self, id: str, name: str, at: Place, way_out: str, *parts: Widget | None) -> None:
        """Put its parts together."""
        Column.__init__(self, *parts, gap=1, pad=2, id=id, name=name)
        self.at, self.way_out = at, way_out

    def lie(self, view: View, page: Box) -> None:
        """Place it over a page."""
        look, clip = view.look, page
        high = min(self.measure(look)[1], page[3] - page[1] - 4)
        if self.at == "below":
            self.place(view, (page[0], page[3] - high, page[2], page[3]), clip)
            return
        Dimmed(id=f"{self.id}.behind").place(view, page, clip)
        wide = min(max(look.scaled(DIALOG_WIDTH), self.measure(look)[0]), page[2] - page[0] - 8)
        left, top = (page[0] + page[2] - wide) // 2, (page[1] + page[3] - high) // 2
        self.place(view, (left, top, left + wide, top + high), clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The paper, and a line in the accent above it."""
        colours = view.look.palette
        items.append((*box, clip, plate, (colours.window, colours.window, colours.border, 0)))
        items.append((box[0], box[1], box[2], box[1] + 2, clip, fill, (colours.accent,)))


@dataclass(slots=True, kw_only=True)
class Dimmed(Widget):
    """A page behind a dialog: it is seen, and takes no clicks."""

    covers: ClassVar[bool] = True

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """A shade."""
        items.append((*box, clip, dim, ()))


@dataclass(slots=True, init=False)
class Brand(Widget):
    """The name of a site, in its colour."""

    tone: str
    role: ClassVar[str] = "heading"
    is_solid: ClassVar[bool] = False

    def __init__(self, title: str, tone: str) -> None:
        """Say the name, and one of theme.TONES."""
        Widget.__init__(self, name=title)
        self.tone = tone

    def natural(self, look: Look) -> tuple[int, int]:
        """The text's, with room around it."""
        return look.width(self.name) * 6 // 5 + 3 * look.unit, look.row

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The plate."""
        look, (inside, ink) = view.look, TONES[self.tone]
        values = (look.palette.window, inside, None, look.scaled(3), self.name, look.bold, ink)
        items.append((*box, clip, plate, values))


class Document(ScrollArea):
    """A page in its furniture, which scrolls, with an overlay that does not.

    Attributes:
        head: above, as wide as the page.
        main: what the page is about.
        sides: columns beside it where there is room; else below it.
        foot: below all.
    """

    __slots__ = ("foot", "head", "main", "overlay", "sides")

    def __init__(
        self,
        id: str,
        head: Widget,
        main: Column,
        sides: tuple[Column, ...],
        foot: Widget,
        overlay: Overlay | None,
    ) -> None:
        """Put a page together."""
        ScrollArea.__init__(self, id, main)
        self.head, self.main, self.sides, self.foot, self.overlay = head, main, sides, foot, overlay

    def sheet(self, room: int, look: Look) -> Column:
        """The page as it is in a width."""
        beside: list[Column] = []
        left = room - self.main.measure(look)[0]
        for side in self.sides:
            left -= side.measure(look)[0] + 2 * look.unit
            if left >= 0:
                beside.append(side)
        below = [side for side in self.sides if side not in beside]
        self.main.grow = 1
        middle = Row(*beside[1:], self.main, *beside[:1], gap=2) if beside else self.main
        return Column(self.head, middle, *below, Divider(), self.foot, gap=1)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Shift the page up by what is scrolled; lay the overlay over it."""
        view.add(self, box, clip)
        look, high = view.look, box[3] - box[1]
        right = box[2] - bar_width(look)
        sheet = self.sheet(right - box[0], look)
        _, content = sheet.measure(look)
        offset = view.scroll(self.id, box, content)
        bottom = box[1] - offset + max(content, high)
        sheet.place(view, (box[0], box[1] - offset, right, bottom), cut(box, clip))
        place_bar(self.id, view, box, clip)
        if self.overlay is not None:
            self.overlay.lie(view, cut((box[0], box[1], right, box[3]), clip))


@dataclass(slots=True)
class Underway(Widget):
    """The line above a page that is being loaded."""

    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True

    def natural(self, look: Look) -> tuple[int, int]:
        """A few pixels high."""
        return 0, 3

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """A groove, of which two thirds are filled."""
        colours = view.look.palette
        items.append((*box, clip, fill, (colours.border,)))
        items.append((box[0], box[1], (box[0] + 2 * box[2]) // 3, box[3], clip, fill, (colours.accent,)))
