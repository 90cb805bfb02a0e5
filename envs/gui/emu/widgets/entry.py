"""Where one types: a field of one line, or an area of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.drawing.glyphs import Font, text_width
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import line, plate
from vlrl.envs.gui.emu.input.text import Spans, clamped, column_at, wrap
from vlrl.envs.gui.emu.state import Box, TextCursor
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut
from vlrl.envs.gui.emu.widgets.basic import focus_ring, surface
from vlrl.envs.gui.emu.widgets.containers import bar_width, place_bar


@dataclass(slots=True, init=False)
class Entry(Widget):
    """A text field: Change(id, text) while one types, Activate(id, text) on enter in a field of one line.

    Attributes:
        text: what is in it; the app's to keep.
        lines: 1 for a field, more for an area that is at least so high.
        hint: shown while it is empty.
        secret: dots in place of letters.
        fixed: letters of equal width.
    """

    text: str
    lines: int
    hint: str
    secret: bool
    fixed: bool
    role: ClassVar[str] = "textbox"
    takes_focus: ClassVar[bool] = True
    fills_width: ClassVar[bool] = True

    def __init__(
        self,
        id: str,
        name: str,
        text: str,
        *,
        lines: int = 1,
        hint: str = "",
        secret: bool = False,
        fixed: bool = False,
        enabled: bool = True,
        grow: int = 0,
        width: int = 80,
    ) -> None:
        """Say what it is called and what is in it."""
        Widget.__init__(self, id=id, name=name, grow=grow, width=width, enabled=enabled)
        self.text, self.lines, self.hint, self.secret, self.fixed = text, lines, hint, secret, fixed

    @property
    def fills_height(self) -> bool:  # type: ignore[override]
        """An area does."""
        return self.lines > 1

    @property
    def value(self) -> str:
        """The text, as far as it is shown."""
        return self.shown

    @property
    def shown(self) -> str:
        """The text, or as many dots."""
        return "•" * len(self.text) if self.secret else self.text

    def font(self, look: Look) -> Font:
        """What it is written in."""
        return look.mono if self.fixed else look.font

    def natural(self, look: Look) -> tuple[int, int]:
        """So many lines high."""
        return 0, look.row if self.lines == 1 else self.lines * look.line + look.unit

    def cursor(self, view: View) -> TextCursor:
        """Cursor within the text."""
        return clamped(view.interface.cursors.get(self.id, TextCursor()), self.text)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """An area scrolls."""
        view.add(self, box, clip)
        if self.lines > 1:
            look = view.look
            spans = wrap(self.shown, self._room(box, look), self.font(look))
            inside = (box[0], box[1] + 2, box[2], box[3] - 2)
            offset = view.scroll(self.id, inside, len(spans) * look.line + look.unit)
            if offset < 0:
                self._reveal(-1 - offset, spans, view)
            place_bar(self.id, view, box, clip)

    def _reveal(self, at: int, spans: Spans, view: View) -> None:
        """Scroll to a character, its line in the middle as far as that goes."""
        scroller, line = view.scrollers[self.id], view.look.line
        middle = row_of(spans, min(at, len(self.text))) * line + line // 2
        offset = middle - (scroller.box[3] - scroller.box[1]) // 2
        view.scrollers[self.id] = scroller._replace(offset=min(max(0, offset), scroller.last))

    def offset_at(self, x: int, y: int, box: Box, view: View) -> int:
        """The place in the text that is nearest to a pixel."""
        look, font = view.look, self.font(view.look)
        if self.lines == 1:
            left = box[0] + look.unit - self._shift(box, view)
            return column_at(self.shown, x - left, font)
        spans = wrap(self.shown, self._room(box, look), font)
        row = (y - self._top(box, view)) // look.line
        start, end = spans[min(max(0, row), len(spans) - 1)]
        return start + column_at(self.shown[start:end], x - box[0] - look.unit, font)

    def place_of(self, offset: int, box: Box, view: View) -> tuple[int, int]:
        """The pixel in the middle of the line where a place in the text is."""
        look, font = view.look, self.font(view.look)
        if self.lines == 1:
            left = box[0] + look.unit - self._shift(box, view)
            return left + text_width(font, self.shown[:offset]), (box[1] + box[3]) // 2
        spans = wrap(self.shown, self._room(box, look), font)
        row = row_of(spans, offset)
        x = box[0] + look.unit + text_width(font, self.shown[spans[row][0] : offset])
        return x, self._top(box, view) + row * look.line + look.line // 2

    def spans(self, box: Box, view: View) -> Spans:
        """(start, end) of every line as it is broken."""
        if self.lines == 1:
            return ((0, len(self.text)),)
        return wrap(self.shown, self._room(box, view.look), self.font(view.look))

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The paper, then line by line, so that a new letter repaints one line."""
        colours = view.look.palette
        radius = 0 if self.lines > 1 else colours.round
        items.append((*box, clip, plate, (surface(view), colours.field, colours.border, radius)))
        self.paint_text(items, box, clip, view)
        focus_ring(items, self, box, clip, view)

    def paint_text(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """What is written on the paper: the text, the caret, or the hint."""
        look, colours = view.look, view.look.palette
        focused = view.has_keys(self.id)
        cursor = self.cursor(view) if focused else None
        if not self.text and self.hint and not focused:
            values = (colours.field, colours.field, None, 0, self.hint, look.font, colours.muted, "left")
            items.append((box[0] + look.unit, box[1] + 2, box[2] - 2, box[3] - 2, clip, plate, values))
        elif self.lines == 1:
            inside = (box[0] + look.unit, box[1] + 2, box[2] - look.unit, box[3] - 2)
            items.append(self._line(inside, clip, 0, len(self.text), cursor, self._shift(box, view), view))
        else:
            self._paint_lines(items, box, cut((box[0] + 1, box[1] + 1, box[2] - 1, box[3] - 1), clip), view)

    def _paint_lines(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        look, top = view.look, self._top(box, view)
        focused = view.has_keys(self.id)
        cursor = self.cursor(view) if focused else None
        left, right = box[0] + look.unit, box[2] - bar_width(look)
        spans = wrap(self.shown, self._room(box, look), self.font(look))
        caret_row = row_of(spans, cursor.caret) if cursor else -1
        first = max(0, (clip[1] - top) // look.line)
        for row in range(first, len(spans)):
            y = top + row * look.line
            if y >= clip[3]:
                break
            start, end = spans[row]
            if start < end or cursor:
                here = cursor if cursor and (row == caret_row or cursor.anchor != cursor.caret) else None
                inside = (left, y, right, y + look.line)
                items.append(self._line(inside, clip, start, end, here, 0, view, row == caret_row))

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
        colours, font, text = view.look.palette, self.font(view.look), self.shown[start:end]
        selection = caret = None
        if cursor is not None:
            first, last = (min(max(end_, start), end) - start for end_ in sorted(cursor))
            if first < last:
                pixels = text_width(font, text[:first]), text_width(font, text[:last])
                selection = (*pixels, colours.accent_text, colours.accent)
            if has_caret:
                caret = text_width(font, text[: cursor.caret - start])
        ink = colours.text if self.enabled else colours.muted
        return (*box, clip, line, (text, font, ink, colours.field, selection, caret, shift))

    def _shift(self, box: Box, view: View) -> int:
        """Pixels by which a field's text is moved to the left so that its caret is seen."""
        look, font = view.look, self.font(view.look)
        room = box[2] - box[0] - 2 * look.unit
        total = text_width(font, self.shown) + 2
        if total <= room or self.id != view.interface.focus:
            return 0
        caret = text_width(font, self.shown[: self.cursor(view).caret])
        return min(max(0, caret - room * 3 // 4), total - room)

    def _room(self, box: Box, look: Look) -> int:
        return box[2] - box[0] - 2 * look.unit - bar_width(look)

    def _top(self, box: Box, view: View) -> int:
        scroller = view.scrollers.get(self.id)
        return box[1] + view.look.unit // 2 - (scroller.offset if scroller else 0)


def row_of(spans: Spans, offset: int) -> int:
    """The line in which a place of the text is."""
    for row, (start, end) in enumerate(spans):
        if start <= offset <= end and not (row + 1 < len(spans) and spans[row + 1][0] == offset):
            return row
    return len(spans) - 1
