"""How a page of a PDF file looks: the same lines at every size, since the page is laid out once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from vlrl.envs.gui.emu.apps.documents.paper import Hit, Page
from vlrl.envs.gui.emu.drawing.glyphs import HEADINGS, SIZES, Font, face, nearest_size, text_width
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.input.text import wrap
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, Scroller, View, Widget, cut
from vlrl.envs.gui.emu.widgets.containers import bar_width, place_bar

PAPER, INK, FAINT = (255, 255, 255), (28, 30, 36), (120, 124, 132)
FOUND, FOUND_NOW = (255, 236, 130), (255, 178, 66)
ROOM, EDGE = 300, 30
"""Width of the text and of the margin beside it, in pixels of a letter size of 13."""
LEAST_LINES = 24
"""Lines that a page has room for, whether or not they are written on."""


class TextLine(NamedTuple):
    """A line of a page: a part of a paragraph, or of the heading where `part` is -1."""

    part: int
    start: int
    text: str


def lines_of(page: Page) -> list[TextLine | None]:
    """The lines as they are broken; None for an empty one."""
    found: list[TextLine | None] = []
    font, bold = Font("serif", 13), Font("serif", 16, True)
    for part, text in enumerate((page.heading, *page.paragraphs), -1):
        if not text:
            continue
        for first, last in wrap(text, ROOM, bold if part < 0 else font):
            found.append(TextLine(part, first, text[first:last]))
        found.append(None)
    return found


@dataclass(slots=True, init=False)
class PageArea(Widget):
    """A page on a desk, that scrolls where it is higher than the room.

    Attributes:
        header: what stands above the text.
        number: of the page, from 1 on.
        whole: whether all of its height is to be seen, as far as letters can be read then.
        hits: places on it that are found; `now` the one that was gone to.
        length: of what is found, in characters.
    """

    page: Page
    header: str
    number: int
    whole: bool
    hits: tuple[Hit, ...]
    now: Hit | None
    length: int
    role: ClassVar[str] = "document"
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(
        self,
        page: Page,
        header: str,
        number: int,
        *,
        whole: bool,
        hits: tuple[Hit, ...] = (),
        now: Hit | None = None,
        length: int = 0,
    ) -> None:
        """Say what is on it."""
        id = f"page.{number}" + (f".{now.part}.{now.start}" if now else "")
        Widget.__init__(self, id=id, name=page.heading, grow=1, width=150, height=90)
        self.page, self.header, self.number, self.whole = page, header, number, whole
        self.hits, self.now, self.length = hits, now, length

    def letters(self, box: Box, look: Look, count: int) -> int:
        """The size of the letters at which the page fits: its width, or its height, too."""
        room = box[2] - box[0] - bar_width(look) - 2 * look.unit
        fitting = [size for size in SIZES if (ROOM + 2 * EDGE) * size // 13 <= room]
        if self.whole:
            high = box[3] - box[1] - 2 * look.unit
            fitting = [size for size in fitting if _height(count, size) <= high]
        return max(fitting, default=SIZES[0])

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The lines, scrolled to what was found until one scrolls by oneself."""
        view.add(self, box, clip)
        look, lines = view.look, lines_of(self.page)
        size = self.letters(box, look, len(lines))
        line, gap = face(Font("serif", size)).height, look.unit
        wide, high = (ROOM + 2 * EDGE) * size // 13, _height(len(lines), size)
        content = high + 2 * gap
        offset = view.scroll(self.id, box, content)
        if self.now and self.id not in view.interface.scroll:
            at = next((n for n, one in enumerate(lines) if one and _holds(one, self.now)), 0)
            last = max(0, content - (box[3] - box[1]))
            offset = min(max(0, (at + 2) * line - (box[3] - box[1]) // 2), last)
            view.scrollers[self.id] = Scroller(box, content, offset)
        left = max(box[0], (box[0] + box[2] - bar_width(look) - wide) // 2)
        top = box[1] + gap - offset
        inside, edge = cut(box, clip), EDGE * size // 13
        sheet = Sheet(name="")
        sheet.place(view, (left, top, left + wide, top + high), inside)
        head = TextRow(self.header, nearest_size(size * 3 // 4), FAINT)
        head.place(view, (left + edge, top + line // 2, left + wide - edge, top + line * 3 // 2), inside)
        y = top + 2 * line + line // 2
        for one in lines:
            if one is not None:
                row = TextRow(one.text, size, INK, is_heading=one.part < 0, marks=self._marks(one))
                row.place(view, (left + edge, y, left + wide - edge // 3, y + line), inside)
            y += line
        foot = TextRow(str(self.number), nearest_size(size * 3 // 4), FAINT)
        middle = left + wide // 2 - line
        foot.place(view, (middle, top + high - 2 * line, middle + 3 * line, top + high - line), inside)
        place_bar(self.id, view, box, clip)

    def _marks(self, line: TextLine) -> tuple[tuple[int, int, Colour], ...]:
        """(first, last character, colour) of what is found in a line."""
        found = []
        for hit in self.hits:
            first = max(0, hit.start - line.start)
            last = min(len(line.text), hit.start + self.length - line.start)
            if hit.part == line.part and first < last:
                found.append((first, last, FOUND_NOW if hit == self.now else FOUND))
        return tuple(found)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The desk."""
        colours = view.look.palette
        items.append((*box, clip, fill, (mix(colours.window, colours.text, 20),)))


def _height(lines: int, size: int) -> int:
    """Pixels of a page with so many lines, its header and footer."""
    line: int = face(Font("serif", size)).height
    return (max(LEAST_LINES, lines) + 5) * line


def _holds(line: TextLine, hit: Hit) -> bool:
    return line.part == hit.part and line.start <= hit.start < line.start + max(1, len(line.text))


@dataclass(slots=True, kw_only=True)
class Sheet(Widget):
    """The paper, white under every theme."""

    is_solid: ClassVar[bool] = False

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """Its shadow and itself."""
        colours = view.look.palette
        shade = (mix(colours.window, colours.text, 38),)
        items.append((box[0] + 2, box[1] + 2, box[2] + 2, box[3] + 2, clip, fill, shade))
        items.append((*box, clip, fill, (PAPER,)))


@dataclass(slots=True, init=False)
class TextRow(Widget):
    """A line of print; what is found in it lies on a colour."""

    size: int
    colour: Colour
    is_heading: bool
    marks: tuple[tuple[int, int, Colour], ...]
    role: ClassVar[str] = "text"
    is_solid: ClassVar[bool] = False

    def __init__(
        self,
        text: str,
        size: int,
        colour: Colour,
        *,
        is_heading: bool = False,
        marks: tuple[tuple[int, int, Colour], ...] = (),
    ) -> None:
        """Say what is printed, and how large."""
        Widget.__init__(self, name=text.rstrip())
        self.size, self.colour, self.is_heading, self.marks = size, colour, is_heading, marks

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The print, then what is found over it."""
        font = Font("serif", self.size)
        if self.is_heading:
            font = Font("serif", nearest_size(self.size * 5 // 4, HEADINGS), True)
        values = (PAPER, PAPER, None, 0, self.name, font, self.colour, "left")
        items.append(
            (box[0], box[1], max(box[2], box[0] + text_width(font, self.name)), box[3], clip, plate, values)
        )
        for first, last, colour in self.marks:
            left = box[0] + text_width(font, self.name[:first])
            word = self.name[first:last]
            mark = (colour, colour, None, 0, word, font, self.colour, "left")
            items.append((left, box[1], left + text_width(font, word), box[3], clip, plate, mark))
