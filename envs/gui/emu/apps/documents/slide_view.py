"""How slides look: the one that is worked on, the small ones beside it, and a presentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vlrl.envs.gui.emu.apps.documents.deck import DESIGNS, Design, Slide
from vlrl.envs.gui.emu.drawing.glyphs import HEADINGS, Font, face, nearest_size
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate, write
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.input.text import wrap
from vlrl.envs.gui.emu.state import Box, MenuItem, TextCursor
from vlrl.envs.gui.emu.widgets import Line
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, outline
from vlrl.envs.gui.emu.widgets.basic import large
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.widgets.rows import RowOf, Rows
from vlrl.types import ByteArray

BLACK = (0, 0, 0)


def slide_box(area: Box, margin: int) -> Box:
    """The largest slide, 16 to 9, in the middle of an area with a margin."""
    room = max(16, area[2] - area[0] - 2 * margin), max(9, area[3] - area[1] - 2 * margin)
    wide = min(room[0], room[1] * 16 // 9)
    high = wide * 9 // 16
    left, top = (area[0] + area[2] - wide) // 2, (area[1] + area[3] - high) // 2
    return left, top, left + wide, top + high


@dataclass(slots=True, init=False)
class SlideText(Entry):
    """The title or the points of a slide, written on it; a dashed frame where one types."""

    design: Design
    is_title: bool

    def __init__(self, id: str, name: str, text: str, design: Design, *, is_title: bool, hint: str) -> None:
        """Say what is written, and on what."""
        Entry.__init__(self, id, name, text, lines=1 if is_title else 2, hint=hint)
        self.design, self.is_title = design, is_title

    def font(self, look: Look) -> Font:
        """Font of a heading, or that of the desktop."""
        return large(look) if self.is_title else look.font

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The text on the slide's colour, dots before the points."""
        look, (paper, ink) = view.look, self._colours
        has_keys = view.has_keys(self.id)
        items.append((*box, clip, fill, (paper,)))
        if not self.text and not has_keys:
            faint = mix(paper, ink, 45)
            values = (paper, paper, None, 0, self.hint, self.font(look), faint, "left", look.unit)
            end = box[1] + (box[3] - box[1] if self.is_title else look.line + look.unit)
            items.append((box[0], box[1] + 1, box[2], end - 1, clip, plate, values))
        else:
            self.paint_text(items, box, clip, view)
        if not self.is_title:
            self._paint_dots(items, box, clip, view)
        if has_keys:
            outline(items, box, clip, self.design.mark)

    @property
    def _colours(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return (self.design.band, self.design.head) if self.is_title else (self.design.paper, self.design.ink)

    def _paint_dots(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        look, top = view.look, self._top(box, view)
        first, last = max(0, -(-(box[1] - top) // look.line)), (box[3] - top) // look.line
        for row, (start, end) in enumerate(self.spans(box, view)[first:last], first):
            y = top + row * look.line
            if (start == 0 or self.text[start - 1] == "\n") and end > start:
                left = box[0] - look.line
                dot = (self.design.paper, self.design.paper, None, 0, "•", look.bold, self.design.mark)
                items.append((left, y, box[0], y + look.line, (left, *clip[1:]), plate, dot))

    def _line(
        self,
        box: Box,
        clip: Box,
        start: int,
        end: int,
        cursor: TextCursor | None,
        shift: int,
        view: View,
        has_caret: bool = True,
    ) -> Item:
        x0, y0, x1, y1, seen, painter, values = Entry._line(
            self, box, clip, start, end, cursor, shift, view, has_caret
        )
        text, font, _, _, *rest = values
        paper, ink = self._colours
        return x0, y0, x1, y1, seen, painter, (text, font, ink, paper, *rest)


@dataclass(slots=True, init=False)
class SlideArea(Widget):
    """The slide that is worked on, on a desk."""

    title: SlideText
    points: SlideText
    design: Design
    role: ClassVar[str] = ""
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(self, title: SlideText, points: SlideText, design: Design) -> None:
        """Say what is on it."""
        Widget.__init__(self, grow=1, width=240, height=110)
        self.title, self.points, self.design = title, points, design

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The title above, the points under it, both within the slide's margins."""
        view.add(self, box, clip)
        look = view.look
        x0, y0, x1, y1 = slide_box(box, look.unit)
        edge = (x1 - x0) // 16
        head = face(large(look)).height + look.unit
        top = y0 + max(2, (y1 - y0) // 5 - head // 2 - look.unit)
        self.title.place(view, (x0 + edge, top, x1 - edge, top + head), clip)
        left = x0 + edge + look.line
        self.points.place(view, (left, top + head + look.unit, x1 - edge, y1 - look.unit), clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The desk, the paper with its shadow, the band and the line under the title."""
        look, colours, design = view.look, view.look.palette, self.design
        items.append((*box, clip, fill, (mix(colours.window, colours.text, 14),)))
        x0, y0, x1, y1 = slide_box(box, look.unit)
        shade = (mix(colours.window, colours.text, 34),)
        items.append((x0 + 2, y0 + 2, x1 + 2, y1 + 2, clip, fill, shade))
        items.append((x0, y0, x1, y1, clip, fill, (design.paper,)))
        title = view.find(self.title.id)
        foot = title.box[3] + look.unit // 2 if title else y0
        items.append((x0, y0, x1, foot, clip, fill, (design.band,)))
        edge = (x1 - x0) // 16
        if design.band == design.paper:
            items.append((x0 + edge, foot, x1 - edge, foot + 1, clip, fill, (design.mark,)))


def thumbnail(width: int, height: int, slide: Slide, design: str, font: Font) -> ByteArray:
    """A painter: a slide too small to be read but for its title, its points as bars."""
    colours = DESIGNS[design]
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = colours.paper
    head = max(face(font).height, height // 4)
    pixels[:head] = colours.band
    if colours.band == colours.paper:
        pixels[head - 1 : head, 3 : width - 3] = colours.mark
    write(pixels[:head, 3 : width - 3], slide.title, font, colours.head, "left")
    step = max(3, (height - head - 2) // 6)
    faint = mix(colours.paper, colours.ink, 55)
    for index, point in enumerate(slide.points[:6]):
        top = head + 2 + index * step
        if top + 2 > height:
            break
        pixels[top : top + 2, 4:6] = colours.mark
        pixels[top : top + 2, 9 : min(width - 4, 9 + (width - 13) * min(len(point), 40) // 40)] = faint
    return pixels


@dataclass(slots=True, init=False)
class Thumbnails(Rows):
    """All slides, one under the other; a drag onto another moves a slide there."""

    slides: tuple[Slide, ...]
    design: str

    def __init__(
        self,
        id: str,
        name: str,
        slides: tuple[tuple[int, Slide], ...],
        design: str,
        chosen: int,
        menu: tuple[MenuItem, ...],
    ) -> None:
        """Say which slides there are, by their keys, and which is chosen."""
        lines = [Line(key, (slide.title, str(n))) for n, (key, slide) in enumerate(slides, 1)]
        Rows.__init__(self, id, name, lines, chosen, drags=True, menu=menu, grow=0, width=118)
        self.slides, self.design = tuple(slide for _, slide in slides), design

    def row_height(self, look: Look) -> int:
        """Height of a slide and what is around it."""
        return look.scaled(54)

    def row(self, line: Line, edges: tuple[int, ...]) -> RowOf:
        """A slide's row."""
        return Thumbnail(self, line, edges)


@dataclass(slots=True, init=False)
class Thumbnail(RowOf):
    """A slide's number, and the slide."""

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The number at the left, a frame around the chosen one."""
        look, colours, owner = view.look, view.look.palette, self.owner
        assert isinstance(owner, Thumbnails)
        number = self.line.cells[1]
        inside = mix(colours.field, colours.accent, 16) if self.is_selected else colours.field
        items.append((*box, clip, fill, (inside,)))
        left = box[0] + look.width("00") + 2
        values = (inside, inside, None, 0, number, look.small, colours.muted, "right", 3)
        items.append((box[0], box[1] + 1, left, box[3] - 1, clip, plate, values))
        x0, y0, x1, y1 = slide_box((left, box[1], box[2], box[3]), look.scaled(4))
        colour = colours.accent if self.is_selected else colours.border
        thick = 2 if self.is_selected else 1
        items.append((x0 - thick, y0 - thick, x1 + thick, y1 + thick, clip, fill, (colour,)))
        font = Font(look.font.family, nearest_size(look.font.size * 3 // 4, HEADINGS), True)
        slide = owner.slides[int(number) - 1]
        items.append((x0, y0, x1, y1, clip, thumbnail, (slide, owner.design, font)))


def presented(width: int, height: int, slide: Slide, design: str, family: str) -> ByteArray:
    """A painter: a slide as large as there is room, on black."""
    colours = DESIGNS[design]
    pixels = np.zeros((height, width, 3), np.uint8)
    x0, y0, x1, y1 = slide_box((0, 0, width, height), 0)
    pixels[y0:y1, x0:x1] = colours.paper
    title = Font(family, nearest_size((y1 - y0) / 10, HEADINGS), True)
    text = Font(family, nearest_size((y1 - y0) / 16))
    edge, line = (x1 - x0) // 16, face(text).height + (y1 - y0) // 60
    foot = y0 + (y1 - y0) // 4
    pixels[y0:foot, x0:x1] = colours.band
    write(pixels[y0:foot, x0 + edge : x1 - edge], slide.title, title, colours.head, "left")
    pixels[foot : foot + 2, x0 + edge : x1 - edge] = colours.mark
    y = foot + edge // 2
    for point in slide.points:
        for first, last in wrap(point, x1 - x0 - 3 * edge, text):
            if y + line > y1:
                return pixels
            if first == 0:
                write(pixels[y : y + line, x0 + edge : x0 + 2 * edge], "•", text, colours.mark, "left")
            write(
                pixels[y : y + line, x0 + 2 * edge : x1 - edge], point[first:last], text, colours.ink, "left"
            )
            y += line
    return pixels


@dataclass(slots=True, init=False)
class Show(Widget):
    """A slide as the audience sees it."""

    slide: Slide
    design: str
    role: ClassVar[str] = "img"
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(self, id: str, slide: Slide, design: str) -> None:
        """Say what is shown."""
        Widget.__init__(self, id=id, name=slide.title, grow=1, width=160, height=90)
        self.slide, self.design = slide, design

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The slide."""
        values = (self.slide, self.design, view.look.font.family)
        items.append((*box, clip, presented, values))

    @property
    def value(self) -> str:
        """The points."""
        return "\n".join(self.slide.points)
