"""Rewards on time: a span of a video, and the order of events.

Multiple choice on a video is `multiple_choice` of `vlrl.rewards.text.choice`, as on an image.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, scored_text
from vlrl.parsing.strict_json import Unreadable, strict_json
from vlrl.scoring.author import reward

Span: TypeAlias = tuple[float, float]
"""(start, end) in seconds, 0 ≤ start ≤ end."""

MAX_ITEMS = 200
"""Events in one order."""

_SECONDS = r"[0-9]{1,7}(?:\.[0-9]{1,9})?"
_CLOCK = r"(?:[0-9]{1,3}:)?[0-9]{1,3}:[0-5]?[0-9](?:\.[0-9]{1,9})?"
_UNIT = r"(?:\s{0,2}(?:seconds|secs|sec|s))?"
_TIME = rf"({_CLOCK}|{_SECONDS}){_UNIT}"
_BETWEEN = r"\s{0,5}(?:-|–|—|to|,|and)\s{0,5}"
_SPAN = re.compile(rf"(?:from |between )?{_TIME}{_BETWEEN}{_TIME}\.?", re.IGNORECASE)
_ITEM_BORDER = re.compile(r"->|[,;→>\n]")


@reward(range=(0.0, 1.0))
def temporal_iou(
    completion: str, answer: Any, *, threshold: float | None = None, part: Part = "answer", **context: Any
) -> float:
    """Overlap of the span written with the true span, |a ∩ b| / |a ∪ b| in seconds; or whether it is enough.

    Range [0, 1]; {0, 1} with a threshold. Source: temporal grounding's tIoU and R1@m (Gao et al. 2017, arXiv
    1705.02101); as a reward, TimeZero and VideoChat-R1 (arXiv 2504.06958).

    A span is "12.5 - 18", "12.5s to 18s", "0:12.5 - 0:18", "from 1:02:03 to 1:02:09", [12.5, 18] or
    {"start": 12.5, "end": 18}, in seconds or [h:]mm:ss. No span, two spans, text around it and an end before
    the start score 0; so does a span of no length. The whole video scores the share that the answer covers.

    Args:
        completion: what the model wrote.
        answer: the true span: text as above, [start, end], or a mapping with start and end.
        threshold: 1 if the IoU is at least this, else 0; None is the IoU itself.
        part: which text is read.
        context: not looked at.

    Raises:
        ValueError: if the answer is not a span, or one of no length.
        ConfigError: unless 0 < threshold ≤ 1.
    """
    if threshold is not None and not 0 < threshold <= 1:
        raise ConfigError(f"threshold={threshold} must lie above 0 and not above 1")
    right = true_span(answer)
    text = scored_text(completion, part)
    said = None if text is None else read_span(text)
    overlap = 0.0 if said is None else overlap_in_time(said, right)
    return overlap if threshold is None else float(overlap >= threshold)


@reward(range=(0.0, 1.0))
def event_order(
    completion: str,
    answer: Any,
    *,
    measure: Literal["kendall", "position", "exact"] = "kendall",
    part: Part = "answer",
    **context: Any,
) -> float:
    """How well the order written agrees with the true order of the same items.

    kendall    max(0, τ), τ = (pairs in the right order − pairs in the wrong one) / all pairs
    position   share of the items that stand in their place
    exact      1 for the same order, else 0

    Range [0, 1]. Source: Kendall 1938; τ below 0 counts as 0, so that the reverse order earns nothing and a
    random one little: (τ + 1) / 2 would give it a half.

    Items are parted by commas, semicolons, arrows, > or line ends, or are a JSON list; they are compared
    without regard to case. Anything but a permutation of the answer's items (one missing, twice or foreign)
    scores 0.

    Raises:
        ValueError: if the answer is not a list of two or more different items.
        ConfigError: for another measure.
    """
    if measure not in _MEASURES:
        raise ConfigError(f"measure={measure!r}; give one of {', '.join(_MEASURES)}")
    items = read_items(answer) if isinstance(answer, str) else _texts(answer)
    if items is None or len(items) < 2 or len(set(items)) < len(items):
        raise ValueError(
            f"the sample's answer must be two or more different items in order, not {answer!r:.60}"
        )
    text = scored_text(completion, part)
    said = None if text is None else read_items(text)
    if said is None or sorted(said) != sorted(items):
        return 0.0
    place = {item: number for number, item in enumerate(items)}
    return _MEASURES[measure]([place[item] for item in said])


def _kendall(order: Sequence[int]) -> float:
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    return max(0.0, sum(1 if a < b else -1 for a, b in pairs) / len(pairs))


def _position(order: Sequence[int]) -> float:
    return sum(place == number for number, place in enumerate(order)) / len(order)


def _exact(order: Sequence[int]) -> float:
    return float(list(order) == sorted(order))


_MEASURES: Mapping[str, Callable[[Sequence[int]], float]] = {
    "kendall": _kendall,
    "position": _position,
    "exact": _exact,
}


def overlap_in_time(said: Span, right: Span) -> float:
    """IoU of two spans, of which the second has a length."""
    shared = max(0.0, min(right[1], said[1]) - max(right[0], said[0]))
    return shared / ((right[1] - right[0]) + (said[1] - said[0]) - shared)


def true_span(answer: Any) -> Span:
    """The span of a sample's answer.

    Raises:
        ValueError: if it is none, or one of no length.
    """
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    span = read_span(answer) if isinstance(answer, str) else _span_of(answer)
    if span is None or span[0] >= span[1]:
        raise ValueError(
            f"the sample's answer {answer!r:.60} is not a span of a video; give [start, end] in seconds"
        )
    return span


def read_span(text: str) -> Span | None:
    """The span of a text that is nothing but one."""
    text = text.strip()
    if match := _SPAN.fullmatch(text):
        return _ordered(_seconds(match.group(1)), _seconds(match.group(2)))
    try:
        return _span_of(strict_json(text))
    except Unreadable:
        return None


def last_span(text: str) -> Span | None:
    """The span of a text that is nothing but one, else the last of "A to B" and the like in it."""
    if (whole := read_span(text)) is not None:
        return whole
    found = [_ordered(_seconds(match.group(1)), _seconds(match.group(2))) for match in _SPAN.finditer(text)]
    return next((span for span in reversed(found) if span is not None), None)


def _span_of(value: Any) -> Span | None:
    if isinstance(value, Mapping):
        value = [value["start"], value["end"]] if value.keys() == {"start", "end"} else None
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return None
    ends = [_seconds(end) if isinstance(end, str) else end for end in value]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
        return None
    return _ordered(*ends)


def _ordered(begin: float, end: float) -> Span | None:
    return (float(begin), float(end)) if 0 <= begin <= end <= 1e7 else None


def _seconds(text: str) -> float:
    """Seconds of "12.5", "12.5s" or "[h:]mm:ss"; not a number for anything else."""
    match = re.fullmatch(_TIME, text.strip(), re.IGNORECASE)
    if not match:
        return math.nan
    total = 0.0
    for digits in match.group(1).split(":"):
        total = total * 60 + float(digits)
    return total


def read_items(text: str) -> list[str] | None:
    """The items of a text in order; None if it is a broken list, or one of too many."""
    text = text.strip()
    if not text.startswith("["):
        items: list[str] | None = [_normal(item) for item in _ITEM_BORDER.split(text)]
    else:
        try:
            items = _texts(strict_json(text))
        except Unreadable:
            return None
    return items if items is not None and len(items) <= MAX_ITEMS else None


def _texts(value: Any) -> list[str] | None:
    """A list of texts and numbers as normalised texts."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    if not all(isinstance(item, str | int | float) for item in value):
        return None
    return [_normal(f"{item:g}" if isinstance(item, float) else str(item)) for item in value]


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())
