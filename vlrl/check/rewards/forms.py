"""A reference as a model would write it, and which other answers are plainly wrong for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from vlrl.check.data.rewards import ANSWER_FORMS
from vlrl.parsing.actions import action_of
from vlrl.parsing.extract import MAX_CHARS
from vlrl.parsing.strict_json import Unreadable
from vlrl.parsing.text import normalize
from vlrl.parsing.units import read_quantity
from vlrl.types import Sample

Form: TypeAlias = tuple[str, str]
"""(which of `bodies`, the text around it with {} in its place)."""

TARGET = "the row's target"
"""The form of a row that brings a whole completion."""

_NEAR = 0.1
"""Numbers that differ by a smaller share may be within a reward's tolerance, and are not plainly wrong."""


def bodies(answer: Any) -> dict[str, str]:
    """Name → the answer as text, the likeliest first; what is in the tags, without them."""
    if isinstance(answer, bool):
        return {"yes or no": "yes" if answer else "no", "text": str(answer)}
    if isinstance(answer, str | int | float):
        return {"text": str(answer)}
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    found: dict[str, str] = {}
    if isinstance(answer, Sequence) and answer and all(isinstance(a, str | int | float) for a in answer):
        if all(isinstance(a, str) for a in answer):
            found["first of the list"] = str(answer[0])
            found["list"] = ", ".join(map(str, answer))
        elif len(answer) == 2:
            found["span"] = f"{answer[0]} - {answer[1]}"
        elif len(answer) == 4:
            found["centre"] = json.dumps(_centre(answer))
    if isinstance(answer, Mapping) and "action" in answer:
        found["action at the centre"] = json.dumps({k: _aimed(v) for k, v in answer.items()})
    return found | {"JSON": json.dumps(answer, ensure_ascii=False, default=str)}


def candidates(sample: Sample) -> Iterator[tuple[Form, str]]:
    """(form, completion) of everything that ought to be right for a sample."""
    if sample.target is not None:
        yield (TARGET, "{}"), sample.target
    if sample.answer is None:
        return
    for (name, body), around in product(bodies(sample.answer).items(), ANSWER_FORMS):
        yield (name, around), put(around, body)


def dressed(form: Form, sample: Sample) -> tuple[str, str] | None:
    """(text around, body) of a sample's right answer in a form; None if it has none in it.

    Of a target the body is the answer, if it stands there once, so that other bodies can take its place.
    """
    if form[0] != TARGET:
        body = None if sample.answer is None else bodies(sample.answer).get(form[0])
        return None if body is None else (form[1], body)
    if sample.target is None:
        return None
    for body in bodies(sample.answer).values() if sample.answer is not None else ():
        if body and sample.target.count(body) == 1:
            return sample.target.replace("{", "{{").replace("}", "}}").replace(body, "{}", 1), body
    return "{}", sample.target


def put(around: str, body: str) -> str:
    """`body` in its surroundings."""
    return around.format(body)


def plainly_wrong(other: Any, answer: Any) -> bool:
    """Whether no fair reward could take one answer for the other: no near numbers, no overlapping places."""
    if isinstance(answer, Mapping) and isinstance(other, Mapping):
        try:
            mine, theirs = action_of(dict(answer)), action_of(dict(other))
        except Unreadable:
            pass
        else:
            return mine.kind != theirs.kind  # of one kind, a reward may compare but a part of them
    if (places := list(_places(answer))) and (others := list(_places(other))):
        return all(_apart(a, b) for a, b in product(places, others))
    if _is_pair(answer) and _is_pair(other):
        return bool(other[0] > answer[1] or other[1] < answer[0])
    return not any(_alike(a, b) for a, b in product(_texts(other), _texts(answer)))


def wrongness(other: Any, answer: Any) -> float:
    """How far a wrong answer is from the right one, where both are numbers; else 0."""
    pair = (_number(str(other)), _number(str(answer)))
    return 0.0 if None in pair else abs(float(pair[0] or 0) - float(pair[1] or 0))


def _texts(answer: Any) -> list[str]:
    several = isinstance(answer, Sequence) and not isinstance(answer, str | bytes)
    texts = [a for a in answer if isinstance(a, str | int | float)] if several else []
    if several and len(texts) == len(answer) and all(isinstance(a, str) for a in answer):
        return [*map(str, texts)]
    return [body[:MAX_CHARS] for body in bodies(answer).values()]


def _alike(a: str, b: str) -> bool:
    numbers = _number(a), _number(b)
    if numbers[0] is not None and numbers[1] is not None:
        return abs(numbers[0] - numbers[1]) <= _NEAR * max(abs(numbers[0]), abs(numbers[1]))
    one, two = normalize(a), normalize(b)
    return one == two or one in two or two in one


def _number(text: str) -> float | None:
    quantity = read_quantity(text) if len(text) < 60 else None
    return None if quantity is None else float(quantity.number)


def _places(answer: Any) -> Iterator[list[float]]:
    """Every box (four numbers) in an answer, however deep; of points lists (polygons) their hull."""
    if isinstance(answer, str) and re.search(r"\d[^\d]+\d[^\d]+\d[^\d]+\d", answer):
        try:
            yield from _places(json.loads(answer))
        except (ValueError, RecursionError):
            return
    elif isinstance(answer, Mapping):
        for value in answer.values():
            yield from _places(value)
    elif isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        if len(answer) == 4 and all(is_number(v) for v in answer):
            yield [float(v) for v in answer]
        elif len(answer) > 2 and all(_is_pair(point) for point in answer):
            xs, ys = zip(*answer, strict=True)
            yield [min(xs), min(ys), max(xs), max(ys)]
        else:
            for value in answer:
                yield from _places(value)


def _apart(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]


def as_places(answer: Any) -> Iterator[list[float]]:
    """Every box in an answer, however deep, and every point as a box without area."""
    yield from _places(answer)
    values = answer.values() if isinstance(answer, Mapping) else (answer,)
    for value in values:
        if _is_pair(value):
            yield [*value, *value]


def _aimed(value: Any) -> Any:
    """A box as the point in its middle: where an agent would click."""
    is_box = isinstance(value, Sequence) and len(value) == 4 and all(is_number(v) for v in value)
    return _centre(value) if is_box else value


def _centre(box: Sequence[Any]) -> list[float]:
    return [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2]


def _is_pair(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(is_number(v) for v in value)


def is_number(value: Any) -> bool:
    """Whether it is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
