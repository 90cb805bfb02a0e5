"""Rows, columns, grids and areas that scroll."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import mix
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget, cut
from vlrl.envs.gui.emu.widgets.basic import Space

Tone = Literal["", "panel", "field", "card"]

MOST_IN_A_ROW = 3
"""Buttons beside one another on a phone."""


class _Box(Widget):
    """Children one after the other, along one axis."""

    __slots__ = ()
    axis: ClassVar[int]
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True


@dataclass(slots=True, init=False)
class Column(_Box):
    """Children from top to bottom.

    Attributes:
        gap: between children, and `pad` around them, in units of the look's padding.
        tone: what lies behind them.
    """

    children: tuple[Widget, ...]
    gap: int
    pad: int
    tone: Tone
    axis: ClassVar[int] = 1

    def __init__(
        self,
        *children: Widget | None,
        gap: int = 1,
        pad: int = 0,
        grow: int = 0,
        width: int = 0,
        height: int = 0,
        tone: Tone = "",
        id: str = "",
        name: str = "",
    ) -> None:
        """Put children together; None is left out."""
        Widget.__init__(self, id=id, name=name, grow=grow, width=width, height=height)
        self.children = tuple(child for child in children if child is not None)
        self.gap, self.pad, self.tone = gap, pad, tone

    def natural(self, look: Look) -> tuple[int, int]:
        """The children's, gaps and margin."""
        axis, cross = self.axis, 1 - self.axis
        along = across = 0
        for child in self.children:
            size = child.measure(look)
            along += size[axis]
            across = max(across, size[cross])
        margin = 2 * self.pad * look.unit
        along += margin + self.gap * look.unit * max(0, len(self.children) - 1)
        across += margin
        return (across, along) if axis else (along, across)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Give what is left over to the children that grow; take what is missing from them, too."""
        view.add(self, box, clip)
        look, axis = view.look, self.axis
        pad, gap = self.pad * look.unit, self.gap * look.unit
        sizes = [child.measure(look) for child in self.children]
        room = box[2 + axis] - box[axis] - 2 * pad - gap * max(0, len(sizes) - 1)
        lengths = _share(room, [size[axis] for size in sizes], [child.grow for child in self.children])
        at, across0, across1 = box[axis] + pad, box[1 - axis] + pad, box[3 - axis] - pad
        for child, length, size in zip(self.children, lengths, sizes, strict=True):
            end = at + length
            if axis:
                x1 = across1 if child.fills_width else min(across1, across0 + size[0])
                child.place(view, (across0, at, x1, end), clip)
            elif child.fills_height:
                child.place(view, (at, across0, end, across1), clip)
            else:
                top = across0 + max(0, (across1 - across0 - size[1]) // 2)
                child.place(view, (at, top, end, min(across1, top + size[1])), clip)
            at = end + gap

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """What lies behind the children."""
        colours = view.look.palette
        if self.tone == "panel":
            items.append((*box, clip, fill, (mix(colours.window, colours.border, 25),)))
        elif self.tone == "field":
            items.append((*box, clip, fill, (colours.field,)))
        elif self.tone == "card":
            values = (colours.window, colours.field, colours.border, colours.round)
            items.append((*box, clip, plate, values))

    @property
    def role(self) -> str:  # type: ignore[override]
        """A group where it has a name."""
        return "group" if self.name else ""


class Row(Column):
    """Children from left to right, centred where they are not as high as the row."""

    __slots__ = ()
    axis: ClassVar[int] = 0
    fills_height: ClassVar[bool] = False


def _share(room: int, sizes: list[int], grows: list[int]) -> list[int]:
    """Lengths along the axis: each its own; those that grow share what is left over, by how they grow.

    What is missing is taken from them, too, but by how long they are: a list that grows most would have
    nothing left where the letters are large.
    """
    total, needed = sum(grows), sum(sizes)
    left = room - needed
    if not total:
        return sizes if left >= 0 or not needed else [max(0, size * room // needed) for size in sizes]
    if left < 0:
        grows = [size if grow else 0 for size, grow in zip(sizes, grows, strict=True)]
        total = sum(grows)
    lengths = list(sizes)
    for index, grow in enumerate(grows):
        if grow:
            part = left * grow // total
            lengths[index] = max(0, sizes[index] + part)
            left, total = left - part, total - grow
    return lengths


@dataclass(slots=True, init=False)
class Grid(Widget):
    """Children in rows of `columns`, all cells of a column equally wide, all rows equally high."""

    children: tuple[Widget, ...]
    columns: int
    gap: int
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(self, columns: int, *children: Widget, gap: int = 1, grow: int = 0) -> None:
        """Put children together."""
        Widget.__init__(self, grow=grow)
        self.children, self.columns, self.gap = children, columns, gap

    def natural(self, look: Look) -> tuple[int, int]:
        """Size with every cell as large as the largest child."""
        sizes = [child.measure(look) for child in self.children]
        rows, gap = -(-len(sizes) // self.columns), self.gap * look.unit
        wide, high = (max(size[axis] for size in sizes) for axis in (0, 1))
        return wide * self.columns + gap * (self.columns - 1), high * rows + gap * (rows - 1)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Fill the box with equal cells."""
        gap, rows = self.gap * view.look.unit, -(-len(self.children) // self.columns)
        wide, high = box[2] - box[0] + gap, box[3] - box[1] + gap
        for index, child in enumerate(self.children):
            row, column = divmod(index, self.columns)
            x0, x1 = (box[0] + wide * c // self.columns for c in (column, column + 1))
            y0, y1 = (box[1] + high * r // rows for r in (row, row + 1))
            child.place(view, (x0, y0, x1 - gap, y1 - gap), clip)


@dataclass(slots=True, init=False)
class ButtonRow(Widget):
    """A dialog's buttons, at the end of a row; on a phone, which is too narrow for four, two in a row."""

    children: tuple[Widget, ...]
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True

    def __init__(self, *children: Widget) -> None:
        """Put buttons together."""
        Widget.__init__(self)
        self.children = children

    def natural(self, look: Look) -> tuple[int, int]:
        """The size of the arrangement."""
        return self._arranged(look).measure(look)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Place the buttons in the arrangement."""
        self._arranged(view.look).place(view, box, clip)

    def _arranged(self, look: Look) -> Widget:
        if look.form == "mobile" and len(self.children) > MOST_IN_A_ROW:
            return Grid(2, *self.children)
        return Row(Space(), *self.children)


@dataclass(slots=True, init=False)
class ScrollArea(Widget):
    """One child that may be higher than what is seen of it."""

    child: Widget
    is_solid: ClassVar[bool] = False
    fills_width: ClassVar[bool] = True
    fills_height: ClassVar[bool] = True

    def __init__(self, id: str, child: Widget, *, grow: int = 1, height: int = 0) -> None:
        """Let a child scroll."""
        Widget.__init__(self, id=id, grow=grow, height=height)
        self.child = child

    def natural(self, look: Look) -> tuple[int, int]:
        """Size as wide as the child and its bar, and only a few rows high."""
        wide, high = self.child.measure(look)
        return wide + bar_width(look), min(high, 3 * look.row)

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Shift the child up by what is scrolled."""
        view.add(self, box, clip)
        _, content = self.child.measure(view.look)
        offset = view.scroll(self.id, box, content)
        right = box[2] - (bar_width(view.look) if content > box[3] - box[1] else 0)
        bottom = box[1] - offset + max(content, box[3] - box[1])
        self.child.place(view, (box[0], box[1] - offset, right, bottom), cut(box, clip))
        place_bar(self.id, view, box, clip)


@dataclass(slots=True)
class ScrollBar(Widget):
    """The bar of what scrolls under the id `of`."""

    of: str = ""
    content: int = 0
    offset: int = 0
    role: ClassVar[str] = "scrollbar"

    def thumb(self, box: Box) -> tuple[int, int]:
        """(top, bottom) of the part that is dragged."""
        high = box[3] - box[1]
        length = max(16, high * high // max(1, self.content))
        top = box[1] + (high - length) * self.offset // max(1, self.content - high)
        return top, top + length

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The groove and the thumb."""
        colours = view.look.palette
        groove = mix(colours.window, colours.border, 40)
        items.append((*box, clip, fill, (groove,)))
        top, bottom = self.thumb(box)
        values = (groove, mix(colours.border, colours.text, 30), None, min(3, colours.round))
        items.append((box[0] + 2, top + 1, box[2] - 2, bottom - 1, clip, plate, values))

    @property
    def value(self) -> str:
        """Pixels scrolled."""
        return str(self.offset)


def bar_width(look: Look) -> int:
    """Width of a scroll bar."""
    return max(10, look.font.size * 4 // 5)


def place_bar(id: str, view: View, box: Box, clip: Box) -> None:
    """A bar at the right edge, if there is anything to scroll."""
    scroller = view.scrollers[id]
    if scroller.last:
        bar = ScrollBar(id=f"{id}.bar", of=id, content=scroller.content, offset=scroller.offset)
        view.add(bar, (box[2] - bar_width(view.look), box[1], box[2], box[3]), clip)
