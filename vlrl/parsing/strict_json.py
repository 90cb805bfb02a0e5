"""JSON written by a model, without its loopholes."""

from __future__ import annotations

import json
from typing import Any


class Unreadable(ValueError):
    """A text or value that is not what was asked for; the message says why."""


def strict_json(text: str) -> Any:
    """The value of a JSON text; every number is a float. Time and memory are linear in the text's length.

    Raises:
        Unreadable: for what is not JSON, a key that occurs twice, NaN, and nesting beyond Python's own limit.
    """
    try:
        # Not int(): it takes quadratic time, and refuses more than 4300 digits.
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_refused, parse_int=float)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Unreadable(f"{text!r:.60} is in no form that is read: {error}") from error


def unfenced(text: str) -> str:
    """A text without the ``` or ```json fence around it, if there is one, stripped."""
    text = text.strip()
    if len(text) < 6 or not (text.startswith("```") and text.endswith("```")):
        return text
    return text[3:-3].removeprefix("json").strip()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise Unreadable("a key occurs twice")
    return dict(pairs)


def _refused(constant: str) -> Any:
    raise Unreadable(f"{constant} is not a number")
