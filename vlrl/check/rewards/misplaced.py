"""Answers that are wrong in one respect: a box or a click elsewhere, another action, another argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vlrl.check.rewards.forms import as_places, is_number
from vlrl.types import Sample

_PLACE_KEYS = frozenset(
    {"bbox", "gt_bbox", "bbox_2d", "point", "point_2d", "coordinate", "coordinates", "start_box", "position"}
)
_TEXT_KEYS = frozenset({"input_text", "text", "content", "value", "app", "app_name", "keys", "key"})
_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
_OTHER_TEXT, _OTHER_KEYS = "zebra quartz", "f9"
_FAR = 0.3
"""Of the diagonal, the least way between two centres for a place to be plainly wrong."""


def misplaced(sample: Sample) -> Iterator[tuple[str, Any]]:
    """(what is wrong, the sample's answer with that changed), for every thing that the answer has."""
    answer = sample.answer.tolist() if hasattr(sample.answer, "tolist") else sample.answer
    extent = _extent(sample, answer)
    moved = _moved(answer, extent)
    if moved is not None and moved != answer:
        yield "wrong place", moved
    if not (isinstance(answer, Mapping) and isinstance(answer.get("action"), str)):
        return
    action = answer["action"]
    has_place = any(key in _PLACE_KEYS for key in answer)
    yield (
        "wrong action",
        {**answer, "action": "long_press" if action == "click" else "click" if has_place else "wait"},
    )
    for key, value in answer.items():
        if key == "direction" and value in _OPPOSITE:
            yield "wrong argument", {**answer, key: _OPPOSITE[value]}
        elif key in _TEXT_KEYS and isinstance(value, str) and value:
            yield "wrong argument", {**answer, key: _OTHER_KEYS if key in ("keys", "key") else _OTHER_TEXT}


def _moved(value: Any, extent: tuple[float, float]) -> Any:
    """The value with each place in the corner that is farthest from it; None if one has no such corner."""
    if isinstance(value, Mapping):
        if not any(key in _PLACE_KEYS for key in value):
            return None
        moved = {key: _moved(each, extent) if key in _PLACE_KEYS else each for key, each in value.items()}
        return None if None in moved.values() else moved
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
        return None
    if all(is_number(each) for each in value):
        return _in_a_corner(value, extent) if len(value) in (2, 4) else None
    if len(value) > 2 and all(isinstance(each, Sequence) and len(each) == 2 for each in value):
        return _polygon_moved(value, extent)
    moved_all = [_moved(each, extent) for each in value]
    return None if any(each is None for each in moved_all) else moved_all


def _in_a_corner(place: Sequence[float], extent: tuple[float, float]) -> list[float] | None:
    box = list(place) if len(place) == 4 else [*place, *place]
    width, height = box[2] - box[0], box[3] - box[1]
    diagonal = (extent[0] ** 2 + extent[1] ** 2) ** 0.5
    corners = [(x, y) for x in (0.0, extent[0] - width) for y in (0.0, extent[1] - height)]
    x, y = max(corners, key=lambda corner: (corner[0] - box[0]) ** 2 + (corner[1] - box[1]) ** 2)
    is_apart = x >= box[2] or x + width <= box[0] or y >= box[3] or y + height <= box[1]
    if not is_apart or ((x - box[0]) ** 2 + (y - box[1]) ** 2) ** 0.5 < _FAR * diagonal:
        return None
    whole = all(isinstance(each, int) for each in place)
    moved = [x, y, x + width, y + height][: len(place)]
    return [int(each) for each in moved] if whole else moved


def _polygon_moved(
    points: Sequence[Sequence[float]], extent: tuple[float, float]
) -> list[list[float]] | None:
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    box = _in_a_corner([min(xs), min(ys), max(xs), max(ys)], extent)
    return None if box is None else [[x - min(xs) + box[0], y - min(ys) + box[1]] for x, y in points]


def _extent(sample: Sample, answer: Any) -> tuple[float, float]:
    """(width, height) of an answer's frame, guessed from its numbers: 0 to 1, the image, or thousandths."""
    numbers = [abs(each) for box in as_places(answer) for each in box] or [0.0]
    if max(numbers) <= 1:
        return 1.0, 1.0
    if sample.media:
        height, width = sample.media[0].original_size
        if max(numbers) <= max(height, width):
            return float(width), float(height)
    return (1000.0, 1000.0) if max(numbers) <= 1000 else (2 * max(numbers), 2 * max(numbers))
