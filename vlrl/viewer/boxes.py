"""Boxes and points that a row speaks of, and where they lie on the image the model sees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlrl.coordinates import Box, CoordinateFrame, Point, convert, frame_extent
from vlrl.errors import DataError
from vlrl.types import Media, Sample

MAX_MARKS = 64
"""Marks drawn on one image at most."""

NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
BOX_TEXT = re.compile(
    rf"\[{NUMBER},{NUMBER},{NUMBER},{NUMBER}\]"  # [x0, y0, x1, y1]
    rf"|\({NUMBER},{NUMBER}\)\s*,\s*\({NUMBER},{NUMBER}\)"  # (x0,y0),(x1,y1)
)
BOX_KEYS = re.compile(r"box|^answer$|^solution$", re.IGNORECASE)
POINT_KEYS = re.compile(r"point|click", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mark:
    """A box or point drawn on an image.

    Attributes:
        place: where in the row it stands, such as answer or metadata.bbox.
        given: its numbers as the row has them.
        x, y, width, height: in pixels of the image as the model sees it; a point has no extent.
        problem: why it is not drawn, or not where it says; empty if it is.
    """

    place: str
    given: tuple[float, ...]
    x: float
    y: float
    width: float
    height: float
    problem: str = ""

    @property
    def numbers(self) -> str:
        """The row's numbers, for people."""
        return ", ".join(f"{number:g}" for number in self.given)


def find_marks(sample: Sample, frame: CoordinateFrame, media: Media) -> list[Mark]:
    """Every box and point in a sample's answer, target and metadata, on one of its media."""
    fields = {"answer": sample.answer, "target": sample.target, **sample.metadata}
    found = dict.fromkeys(numbers for key, value in fields.items() for numbers in _search(key, value, key))
    seen: set[tuple[float, ...]] = set()
    marks = []
    for place, numbers in found:
        if numbers not in seen:  # the answer is often part of the target
            seen.add(numbers)
            marks.append(_mark(place, numbers, frame, media))
    return marks[:MAX_MARKS]


def _search(place: str, value: Any, key: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """(place, numbers) of what looks like a box anywhere, and of points under a key that says so."""
    if isinstance(value, str):
        for match in BOX_TEXT.finditer(value):
            yield place, tuple(float(n) for n in match.groups() if n is not None)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _search(f"{place}.{name}", inner, str(name))
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        numbers = tuple(float(n) for n in value if isinstance(n, int | float) and not isinstance(n, bool))
        wanted = {4: BOX_KEYS, 2: POINT_KEYS}.get(len(numbers))
        if wanted and len(numbers) == len(value) and wanted.search(key):
            yield place, numbers
        elif not numbers:
            for inner in value:
                yield from _search(place, inner, key)


def _mark(place: str, numbers: tuple[float, ...], frame: CoordinateFrame, media: Media) -> Mark:
    wide, high = frame_extent(frame, media)
    xs, ys = numbers[0::2], numbers[1::2]
    outside = min(numbers) < 0 or max(xs) > wide or max(ys) > high
    problem = f"outside {frame}, {wide:g} by {high:g}: is it in another frame?" if outside else ""
    try:
        if len(numbers) == 2:
            point = convert(Point(*numbers), frame, "resized_pixels", media, clamp=True)
            return Mark(place, numbers, point.x, point.y, 0, 0, problem)
        box = convert(Box(*numbers), frame, "resized_pixels", media, clamp=True)
    except DataError as error:
        return Mark(place, numbers, 0, 0, 0, 0, f"not drawn: {error}")
    return Mark(place, numbers, box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0, problem)
