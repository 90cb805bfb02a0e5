"""Boxes, points and polygons as models write them, read strictly: the whole text is a place, or it is none.

Forms read, each also inside a ``` or ```json fence:

    a box        [x0, y0, x1, y1]                     {"bbox_2d": [x0, y0, x1, y1], "label": "cat"}
                 (x0,y0),(x1,y1)                      <|box_start|>(x0,y0),(x1,y1)<|box_end|>
                 <ref>cat</ref><box>[[x0, y0, x1, y1]]</box>
    boxes        a JSON list of either JSON form; the other forms one after the other; [] or None for no box
    a point      [x, y]   (x, y)   {"point_2d": [x, y]}   <point>x y</point>   <|box_start|>(x,y)<|box_end|>
    a polygon    [[x, y], [x, y], …]   [x, y, x, y, …]   {"polygon": …}, of three corners or more

Numbers are whole or decimal, finite, at most MAX_COORDINATE; the corners of a box stand in order. Nothing is
repaired: text around the place, a key twice, two keys for one box, NaN, or a box whose corners are the wrong
way round make the text unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from vlrl.coordinates import Box, Point
from vlrl.errors import DataError
from vlrl.parsing.strict_json import Unreadable, strict_json, unfenced

Polygon: TypeAlias = tuple[Point, ...]
Read = TypeVar("Read")

MAX_PLACES = 1000
"""Boxes in one text; more are not an answer."""
MAX_CORNERS = 128
"""Corners of one polygon."""
MAX_COORDINATE = 1e6

BOX_KEYS = ("bbox_2d", "bbox", "box")
POINT_KEYS = ("point_2d", "point", "coordinate")
POLYGON_KEYS = ("polygon", "segmentation")

_DIGITS = r"(-?[0-9]{1,9}(?:\.[0-9]{1,17})?)"
_NUMBER = rf"\s*{_DIGITS}\s*"
_PAIR = rf"\({_NUMBER},{_NUMBER}\)"
_CORNERS = re.compile(rf"{_PAIR}\s*,\s*{_PAIR}")
_MARKED = re.compile(
    rf"(?:<\|object_ref_start\|>([^<]*)<\|object_ref_end\|>\s*)?<\|box_start\|>\s*{_CORNERS.pattern}\s*<\|box_end\|>"
)
_TAGGED = re.compile(
    rf"(?:<ref>([^<]*)</ref>\s*)?<box>\s*\[\[{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\]\]\s*</box>"
)
_POINTS = (
    re.compile(rf"<point>\s*{_DIGITS}\s+{_DIGITS}\s*</point>"),
    re.compile(rf"<\|box_start\|>\s*{_PAIR}\s*<\|box_end\|>"),
    re.compile(_PAIR),
)


@dataclass(frozen=True, slots=True)
class LabelledBox:
    """A box and what is said to be in it; None if nothing is said."""

    box: Box
    label: str | None = None


def read_boxes(text: str) -> list[LabelledBox]:
    """Every box of a text that is nothing but boxes.

    Raises:
        Unreadable: if the text is anything else.
    """
    text = unfenced(text)
    if text.casefold() == "none":
        return []
    for pattern in (_MARKED, _TAGGED, _CORNERS):
        if (found := _one_after_the_other(pattern, text)) is not None:
            return found
    return boxes_of(strict_json(text))


def boxes_of(value: Any) -> list[LabelledBox]:
    """Every box of a value made of lists, mappings and numbers, such as a dataset's answer.

    Raises:
        Unreadable: if it holds anything but boxes.
    """
    if isinstance(value, Mapping) or (_is_list(value) and value and _is_number(value[0])):
        return [_labelled(value)]
    if not _is_list(value):
        raise Unreadable(f"{_brief(value)} is neither a box nor a list of boxes")
    if len(value) > MAX_PLACES:
        raise Unreadable(f"{len(value)} boxes; {MAX_PLACES} are read at most")
    return [_labelled(item) for item in value]


def read_point(text: str) -> Point:
    """The point of a text that is nothing but one point.

    Raises:
        Unreadable: if the text is anything else.
    """
    text = unfenced(text)
    for pattern in _POINTS:
        if match := pattern.fullmatch(text):
            return Point(*_numbers([float(n) for n in match.groups()], 2))
    return point_of(strict_json(text))


def point_of(value: Any) -> Point:
    """The point of a value such as [x, y] or {"point": [x, y]}.

    Raises:
        Unreadable: if it is anything else.
    """
    numbers = _under(POINT_KEYS, value) if isinstance(value, Mapping) else value
    return Point(*_numbers(numbers, 2))


def read_polygon(text: str) -> Polygon:
    """The polygon of a text that is nothing but one polygon.

    Raises:
        Unreadable: if the text is anything else.
    """
    return polygon_of(strict_json(unfenced(text)))


def polygon_of(value: Any) -> Polygon:
    """The polygon of a value such as [[x, y], …], [x, y, …] or {"polygon": …}.

    Raises:
        Unreadable: if it is anything else, or has fewer than three corners.
    """
    corners = _under(POLYGON_KEYS, value) if isinstance(value, Mapping) else value
    if not _is_list(corners):
        raise Unreadable(f"{_brief(value)} is not a polygon")
    if corners and _is_number(corners[0]):
        if len(corners) % 2:
            raise Unreadable("a polygon given as one list has an even number of numbers")
        corners = [corners[i : i + 2] for i in range(0, len(corners), 2)]
    if not 3 <= len(corners) <= MAX_CORNERS:
        raise Unreadable(f"{len(corners)} corners; a polygon has from 3 to {MAX_CORNERS}")
    return tuple(Point(*_numbers(corner, 2)) for corner in corners)


def try_read(reader: Callable[[str], Read], text: str | None) -> Read | None:
    """What a reader makes of a model's text; None where it can make nothing of it."""
    try:
        return None if text is None else reader(text)
    except Unreadable:
        return None


def of_answer(answer: Any, read: Callable[[str], Read], convert: Callable[[Any], Read], what: str) -> Read:
    """The place that a sample's answer gives, as a value, or as text in a model's form, also in answer tags.

    Raises:
        ValueError: saying why the sample is unusable.
    """
    if answer is None:
        raise ValueError(f"the sample has no 'answer'; it must hold {what}")
    if hasattr(answer, "tolist"):  # of numpy, from a table of numbers
        answer = answer.tolist()
    try:
        if not isinstance(answer, str):
            return convert(answer)
        return read(answer.strip().removeprefix("<answer>").removesuffix("</answer>"))
    except Unreadable as error:
        raise ValueError(f"the sample's answer must hold {what}: {error}") from error


def _one_after_the_other(pattern: re.Pattern[str], text: str) -> list[LabelledBox] | None:
    """Boxes of a text that is this pattern again and again with white space or commas between, else None."""
    found: list[LabelledBox] = []
    place = 0
    while match := pattern.match(text, place):
        *label, x0, y0, x1, y1 = match.groups()
        box = _box([float(n) for n in (x0, y0, x1, y1)])
        found.append(LabelledBox(box, label[0].strip() if label and label[0] else None))
        place = match.end()
        while place < len(text) and text[place] in " ,;\t\r\n":
            place += 1
        if len(found) > MAX_PLACES:
            raise Unreadable(f"more than {MAX_PLACES} boxes")
    return found if found and place == len(text) else None


def _labelled(value: Any) -> LabelledBox:
    if not isinstance(value, Mapping):
        return LabelledBox(_box(value))
    label = value.get("label")
    if not (label is None or isinstance(label, str)):
        raise Unreadable(f"label {_brief(label)} is not text")
    return LabelledBox(_box(_under(BOX_KEYS, value)), label)


def _under(keys: Sequence[str], value: Mapping[str, Any]) -> Any:
    found = [key for key in keys if key in value]
    if len(found) != 1:
        raise Unreadable(f"{', '.join(map(str, value)) or 'nothing'}: give one of {', '.join(keys)}")
    return value[found[0]]


def _box(numbers: Any) -> Box:
    try:
        return Box(*_numbers(numbers, 4))
    except DataError as error:
        raise Unreadable(str(error)) from error


def _numbers(value: Any, count: int) -> list[float]:
    """So many numbers within bounds, as floats."""
    if not _is_list(value) or len(value) != count or not all(map(_is_number, value)):
        raise Unreadable(f"{_brief(value)} is not {count} numbers")
    if not all(abs(n) <= MAX_COORDINATE for n in value):  # not a number is not less than anything
        raise Unreadable(f"{_brief(value)}: a coordinate is a number of at most {MAX_COORDINATE:g}")
    return [float(n) for n in value]


def _brief(value: Any) -> str:
    """A value for a message; one that nests is not written out, as that takes as long as it is deep."""
    if _is_list(value):
        return f"a list of {len(value)}" if not all(map(_is_number, value)) else f"{list(value)!r:.60}"
    return f"{value!r:.60}" if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
