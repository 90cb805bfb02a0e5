"""What every widget is: it says how large it wants to be, where its parts go, and what is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import Painter, fill
from vlrl.envs.gui.emu.drawing.theme import Colour
from vlrl.envs.gui.emu.input.events import Event
from vlrl.envs.gui.emu.state import Box, Held, Interface, MenuItem

Item: TypeAlias = tuple[int, int, int, int, Box, Painter, tuple[Any, ...]]
"""What is drawn: (x0, y0, x1, y1, clip, painter, the painter's values). Equal items look the same."""


class Placed(NamedTuple):
    """A widget and where it is, in pixels of its window; what lies outside `clip` is not seen."""

    widget: Widget
    box: Box
    clip: Box

    @property
    def seen(self) -> Box:
        """The part of the box inside the clip; empty if x1 ≤ x0 or y1 ≤ y0."""
        return cut(self.box, self.clip)


class Scroller(NamedTuple):
    """A part that scrolls.

    Attributes:
        box: what is seen of it.
        content: height of all of it, in pixels.
        offset: pixels scrolled, at most `last`.
    """

    box: Box
    content: int
    offset: int

    @property
    def last(self) -> int:
        """The largest offset."""
        return max(0, self.content - (self.box[3] - self.box[1]))


class View:
    """A widget tree laid out in a window: what is where, in the order of drawing."""

    def __init__(self, look: Look, interface: Interface, is_active: bool, band: Held | None = None) -> None:
        self.look, self.interface, self.is_active, self.band = look, interface, is_active, band
        self.placed: list[Placed] = []
        self.scrollers: dict[str, Scroller] = {}
        self._items: list[Item] | None = None
        self._by_id: dict[str, Placed] = {}
        self._num_found = 0

    def seen_with(self, interface: Interface, is_active: bool) -> View:
        """The same layout, which does not depend on where the keys go; what is rendered does."""
        other = View(self.look, interface, is_active, self.band)
        other.placed, other.scrollers = self.placed, self.scrollers
        other._by_id, other._num_found = self._by_id, self._num_found
        return other

    def add(self, widget: Widget, box: Box, clip: Box) -> None:
        """Say where a widget is."""
        self.placed.append(Placed(widget, box, clip))

    def scroll(self, id: str, box: Box, content: int) -> int:
        """Register a part that scrolls; gives its offset."""
        scroller = Scroller(box, content, 0)
        offset = min(self.interface.scroll.get(id, 0), scroller.last)
        self.scrollers[id] = scroller._replace(offset=offset)
        return offset

    def has_keys(self, id: str) -> bool:
        """Whether the keys go to the widget with this id, which shows it."""
        return bool(id) and id == self.interface.focus and self.is_active

    @property
    def items(self) -> list[Item]:
        """What is drawn."""
        if self._items is None:
            items: list[Item] = []
            self._items = items
            draws = self.look.family.draws
            for widget, box, clip in self.placed:
                if box[0] < clip[2] and box[1] < clip[3] and clip[0] < box[2] and clip[1] < box[3]:
                    paint = draws.get(type(widget))
                    if paint is None:
                        widget.paint(items, box, clip, self)
                    else:
                        paint(widget, items, box, clip, self)
        return self._items

    def find(self, id: str) -> Placed | None:
        """The widget with this id."""
        if self._num_found != len(self.placed):
            self._num_found = len(self.placed)
            # of several with one id the first stays
            self._by_id = {placed.widget.id: placed for placed in reversed(self.placed)}
        return self._by_id.get(id)

    def at(self, x: int, y: int) -> Placed | None:
        """The front widget under a place that does anything."""
        for placed in reversed(self.placed):
            (x0, y0, x1, y1), clip = placed.box, placed.clip
            inside = x0 <= x < x1 and y0 <= y < y1 and clip[0] <= x < clip[2] and clip[1] <= y < clip[3]
            if inside and placed.widget.is_solid:
                return placed
        return None


@dataclass(slots=True, kw_only=True)
class Widget:
    """The base of all widgets.

    Attributes:
        id: stable, unlike any other in its window; "" for what cannot be used.
        name: what a person would call it.
        grow: its share of the room that is left over; 0 keeps its own size.
        width: least width in pixels of font size 13; it grows with the font.
        height: least height, likewise.
        press: what a click sends to the app.
        twice: what a double click sends.
        menu: its context menu.
        enabled: whether it takes clicks and keys.
    """

    id: str = ""
    name: str = ""
    grow: int = 0
    width: int = 0
    height: int = 0
    press: Event | None = None
    twice: Event | None = None
    menu: tuple[MenuItem, ...] = ()
    enabled: bool = True
    _size: tuple[int, int] | None = None
    _look: Look | None = None

    role: ClassVar[str] = ""
    is_solid: ClassVar[bool] = True
    """Whether a click on it stays with it, rather than going through to what lies behind."""
    takes_focus: ClassVar[bool] = False
    covers: ClassVar[bool] = False
    """Whether it lies over what was placed before it in its window."""
    fills_width: ClassVar[bool] = False
    fills_height: ClassVar[bool] = False

    def measure(self, look: Look) -> tuple[int, int]:
        """(width, height) in pixels that it needs."""
        if self._size is None or self._look is not look:
            wide, high = self.natural(look)
            scale = look.font.size
            self._size = max(wide, self.width * scale // 13), max(high, self.height * scale // 13)
            self._look = look
        return self._size

    def natural(self, look: Look) -> tuple[int, int]:
        """(width, height) by its content alone."""
        return 0, 0

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Record in the view where it and its parts are."""
        view.add(self, box, clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """Add what is drawn of it."""

    def states(self, view: View) -> set[str]:
        """States of the widget, in screen.Element's words."""
        found = set() if self.enabled else {"disabled"}
        if view.has_keys(self.id):
            found.add("focused")
        return found

    @property
    def value(self) -> str:
        """What it holds, as a text."""
        return ""

    @property
    def drop_key(self) -> Any:
        """What a Drop on it says."""
        return None


def inner(box: Box, pad: int) -> Box:
    """The box without a margin."""
    return box[0] + pad, box[1] + pad, box[2] - pad, box[3] - pad


def cut(box: Box, clip: Box) -> Box:
    """What two boxes share; written out, since min and max cost half of a screen's layout."""
    (x0, y0, x1, y1), (a, b, c, d) = box, clip
    return x0 if x0 > a else a, y0 if y0 > b else b, x1 if x1 < c else c, y1 if y1 < d else d


def outline(items: list[Item], box: Box, clip: Box, colour: Colour) -> None:
    """Draw a line of one pixel around a box, on its inside."""
    x0, y0, x1, y1 = box
    for edge in ((x0, y0, x1, y0 + 1), (x0, y1 - 1, x1, y1), (x0, y0, x0 + 1, y1), (x1 - 1, y0, x1, y1)):
        items.append((*edge, clip, fill, (colour,)))
