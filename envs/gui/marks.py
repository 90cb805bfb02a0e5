"""Numbers for what can be used on a screen (set-of-marks), and the accessibility tree as text.

A mark is a number on a widget; an action may name it in the place of coordinates. Set-of-marks prompting is
arXiv 2310.11441; the drawing and the form of the list are ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.hits import UNREACHABLE, element_at
from vlrl.envs.gui.screen import Element, PixelBox
from vlrl.types import ByteArray

MAX_MARKS = 300
"""Most marks of a screen; of more, the first ones in the order of drawing."""
MAX_LINES = 400
"""Most lines of a tree; a last line says how many are left out."""
MAX_CHARS = 200
"""Most characters of a name or value in a tree."""

ALIKE_ANYWHERE = frozenset(
    [
        "button",
        "checkbox",
        "columnheader",
        "combobox",
        "gridcell",
        "link",
        "listitem",
        "menuitem",
        "menuitemcheckbox",
        "menuitemradio",
        "option",
        "radio",
        "switch",
        "tab",
        "treeitem",
    ]
)
"""Roles of widgets on which a click does the same wherever it falls."""
_USABLE = ALIKE_ANYWHERE | {
    "graphics-symbol",
    "img",
    "scrollbar",
    "searchbox",
    "slider",
    "spinbutton",
    "textbox",
}
_SAID_STATES = ("focused", "checked", "selected", "expanded", "disabled")
_COLOURS = ((214, 40, 40), (32, 92, 214), (24, 130, 52), (134, 52, 172), (186, 84, 8), (8, 120, 130))
_WHITE = (255, 255, 255)
# Rows of 3 bits, so that a screen is the same whatever fonts a machine has.
_DIGITS = [
    np.array([[int(bit) for bit in row] for row in rows.split()], bool)
    for rows in (
        "111 101 101 101 111", "010 110 010 010 111", "111 001 111 100 111", "111 001 111 001 111",
        "101 101 111 001 001", "111 100 111 001 111", "111 100 111 101 111", "111 001 010 010 010",
        "111 101 111 101 111", "111 101 111 001 111",
    )
]  # fmt: skip


class ScreenMark(NamedTuple):
    """A widget with a number.

    Attributes:
        point: where an action that names it acts, a pixel of the screen.
        box: of the widget.
        is_alike_anywhere: a click anywhere in it does the same, as on a button and not on a slider.
    """

    point: Pixel
    box: PixelBox
    is_alike_anywhere: bool


def marks_of(elements: Sequence[Element], size: tuple[int, int]) -> list[tuple[Element, ScreenMark]]:
    """The widgets that can be used and seen, in the order of drawing: the first has the number 1.

    Args:
        elements: as a backend's `elements` gives them.
        size: (width, height) of the screen.
    """
    found: list[tuple[Element, ScreenMark]] = []
    for element in elements:
        is_usable = element.role in _USABLE and (element.role != "img" or element.name)
        if not is_usable or element.states & UNREACHABLE or len(found) == MAX_MARKS:
            continue
        x0, y0 = max(0, element.box[0]), max(0, element.box[1])
        x1, y1 = min(size[0], element.box[2]), min(size[1], element.box[3])
        point = (x0 + x1) // 2, (y0 + y1) // 2
        met = element_at(elements, point)
        if x0 < x1 and y0 < y1 and met is not None and _is_within(met.box, element.box):
            is_alike = element.role in ALIKE_ANYWHERE
            found.append((element, ScreenMark(point, (x0, y0, x1, y1), is_alike)))
    return found


def mark_at(marks: Sequence[ScreenMark], pixel: Pixel) -> int | None:
    """The number of the smallest mark whose use comes to the same as that of a pixel; None if none does."""
    x, y = pixel
    alike = [
        ((mark.box[2] - mark.box[0]) * (mark.box[3] - mark.box[1]), number)
        for number, mark in enumerate(marks, 1)
        if mark.point == pixel
        or (mark.is_alike_anywhere and mark.box[0] <= x < mark.box[2] and mark.box[1] <= y < mark.box[3])
    ]
    return min(alike)[1] if alike else None


def with_marks(pixels: ByteArray, marks: Sequence[ScreenMark]) -> ByteArray:
    """A copy of a screenshot with each mark's box and number drawn."""
    drawn = pixels.copy()
    scale = max(2, drawn.shape[0] // 400)
    for number, mark in enumerate(marks, 1):
        _frame(drawn, mark.box, _COLOURS[number % len(_COLOURS)])
    for number, mark in enumerate(marks, 1):  # numbers lie over all boxes
        _label(drawn, number, mark.box, _COLOURS[number % len(_COLOURS)], scale)
    return drawn


def tree_text(
    elements: Sequence[Element],
    marks: Sequence[tuple[Element, ScreenMark]],
    place: Callable[[Pixel], str] | None = None,
) -> str:
    """A screen as text: a line for each widget and text that can be seen, in the order of drawing.

    Args:
        elements: as a backend's `elements` gives them.
        marks: those of `marks_of`; their lines begin with the number.
        place: writes a pixel, for grammars that name places and not numbers; None writes numbers.
    """
    numbers = {id(element): (number, mark) for number, (element, mark) in enumerate(marks, 1)}
    lines = []
    for element in elements:
        number, mark = numbers.get(id(element), (0, None))
        if mark is None and (element.states & UNREACHABLE or not (element.name or element.value)):
            continue
        before = "" if mark is None or place else f"[{number}] "
        after = f" at {place(mark.point)}" if mark is not None and place else ""
        lines.append(f"{before}{_line(element)}{after}")
    left_out = len(lines) - MAX_LINES
    return "\n".join(lines[:MAX_LINES] + [f"({left_out} more)"] * (left_out > 0))


def _line(element: Element) -> str:
    words = [element.role]
    if element.name:
        words.append(_quoted(element.name))
    if element.value and element.value != element.name:
        words += ["=", _quoted(element.value)]
    return " ".join([*words, *(state for state in _SAID_STATES if state in element.states)])


def _quoted(text: str) -> str:
    short = text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]} …"
    return json.dumps(short, ensure_ascii=False)


def _is_within(inner: PixelBox, outer: PixelBox) -> bool:
    return all(inner[i] >= outer[i] for i in (0, 1)) and all(inner[i] <= outer[i] for i in (2, 3))


def _frame(pixels: ByteArray, box: PixelBox, colour: tuple[int, int, int]) -> None:
    x0, y0, x1, y1 = box
    pixels[y0:y1, [x0, x1 - 1]] = colour
    pixels[[y0, y1 - 1], x0:x1] = colour


def _label(pixels: ByteArray, number: int, box: PixelBox, colour: tuple[int, int, int], scale: int) -> None:
    """The number at the box's upper left corner: above the box where there is room, else within it."""
    gap = np.zeros((5, 1), bool)
    columns = [part for digit in str(number) for part in (_DIGITS[int(digit)], gap)][:-1]
    ink = np.pad(np.kron(np.hstack(columns), np.ones((scale, scale), bool)), scale)
    height, width = ink.shape
    x = max(0, min(box[0], pixels.shape[1] - width))
    y = box[1] - height if box[1] >= height else box[1]
    ink = ink[: pixels.shape[0] - y, : pixels.shape[1] - x]
    pixels[y : y + ink.shape[0], x : x + ink.shape[1]] = np.where(ink[..., None], _WHITE, colour)
