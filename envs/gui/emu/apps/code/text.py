"""Where programs are written: an area with numbered lines, colours, and marks where something is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.apps.code.lint import KEYWORDS, Problem, tokens
from vlrl.envs.gui.emu.drawing.glyphs import text_width
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut
from vlrl.envs.gui.emu.widgets.entry import Entry

LIGHT: dict[str, Colour] = {
    "keyword": (150, 30, 160),
    "string": (163, 58, 20),
    "comment": (86, 120, 80),
    "number": (9, 110, 88),
}
DARK: dict[str, Colour] = {
    "keyword": (214, 140, 226),
    "string": (226, 160, 124),
    "comment": (130, 170, 118),
    "number": (140, 214, 170),
}
WRONG = (226, 62, 54)


@dataclass(slots=True, init=False)
class CodeText(Entry):
    """The text of a program, in letters of equal width."""

    problems: tuple[Problem, ...]

    def __init__(self, id: str, name: str, text: str, problems: tuple[Problem, ...]) -> None:
        """Say what is written and what is wrong with it."""
        Entry.__init__(self, id, name, text, lines=4, fixed=True, grow=1)
        self.problems = problems

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The text, then the colours over it, then the caret again."""
        colours = view.look.palette
        items.append((*box, clip, fill, (colours.field,)))
        self.paint_text(items, box, clip, view)
        inside = cut((box[0] + 1, box[1] + 1, box[2] - 1, box[3] - 1), clip)
        cursor = self.cursor(view) if view.has_keys(self.id) else None
        selected = sorted(cursor) if cursor else [0, 0]
        for y, start, end in self.rows(box, view):
            if selected[0] == selected[1] or end < selected[0] or selected[1] < start:
                self._paint_words(items, box[0] + view.look.unit, y, inside, view, (start, end))
            self._paint_problems(items, box[0] + view.look.unit, y, inside, view, (start, end))
        if cursor and cursor.anchor == cursor.caret:
            x, y = self.place_of(cursor.caret, box, view)
            top = y - view.look.line // 2
            items.append((x, top, x + 1, top + view.look.line, inside, fill, (colours.text,)))

    def rows(self, box: Box, view: View) -> list[tuple[int, int, int]]:
        """(top, first, last character) of each row that is seen."""
        line, top = view.look.line, self._top(box, view)
        spans = self.spans(box, view)
        first, last = max(0, (box[1] - top) // line), max(0, -((top - box[3]) // line))
        return [(top + (first + n) * line, *span) for n, span in enumerate(spans[first:last])]

    def _paint_words(
        self, items: list[Item], left: int, y: int, clip: Box, view: View, span: tuple[int, int]
    ) -> None:
        look, paper = view.look, view.look.palette.field
        colours, font = DARK if sum(paper) < 380 else LIGHT, self.font(look)
        text = self.text[span[0] : span[1]]
        for piece in tokens(text):
            kind = "keyword" if piece.text in KEYWORDS else piece.kind
            if kind in colours:
                x = left + text_width(font, text[: piece.start])
                values = (paper, paper, None, 0, piece.text, font, colours[kind], "left")
                wide = text_width(font, piece.text)
                items.append((x, y, x + wide, y + look.line, clip, plate, values))

    def _paint_problems(
        self, items: list[Item], left: int, y: int, clip: Box, view: View, span: tuple[int, int]
    ) -> None:
        """A line under what is wrong; under the last letter where something is missing."""
        font, foot = self.font(view.look), y + view.look.line - 1
        for problem in self.problems:
            first, last = max(span[0], min(problem.start, problem.end - 1)), min(span[1], problem.end)
            if span[0] <= first < last:
                x = left + text_width(font, self.text[span[0] : first])
                wide = text_width(font, self.text[first:last])
                items.append((x, foot - 1, x + wide, foot + 1, clip, fill, (WRONG,)))


@dataclass(slots=True, init=False)
class CodeArea(Widget):
    """A program with the numbers of its lines."""

    text: CodeText
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(self, text: CodeText) -> None:
        """Say what is written."""
        Widget.__init__(self, grow=1, width=120, height=70)
        self.text = text

    def place(self, view: View, box: Box, clip: Box) -> None:
        """The numbers at the left of the text."""
        view.add(self, box, clip)
        gutter = text_width(view.look.mono, "0000") + view.look.unit
        self.text.place(view, (box[0] + gutter, *box[1:]), clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The numbers, that of the caret's line darker, a dot where something is wrong."""
        look, colours, text = view.look, view.look.palette, self.text
        placed = view.find(text.id)
        if placed is None:
            return
        right = placed.box[0]
        behind = mix(colours.field, colours.button, 60)
        items.append((box[0], box[1], right, box[3], clip, fill, (behind,)))
        inside = cut((box[0], box[1] + 1, right, box[3] - 1), clip)
        caret = text.cursor(view).caret
        now = text.text.count("\n", 0, caret) + 1 if view.has_keys(text.id) else 0
        wrong = {problem.line for problem in text.problems}
        for y, start, _ in text.rows(placed.box, view):
            if start and text.text[start - 1] != "\n":
                continue  # a long line goes on here
            number = text.text.count("\n", 0, start) + 1
            ink = WRONG if number in wrong else colours.text if number == now else colours.muted
            values = (behind, behind, None, 0, str(number), look.mono, ink, "right", look.unit)
            items.append((box[0], y, right, y + look.line, inside, plate, values))
