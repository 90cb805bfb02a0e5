"""What a reward reads: the part of a completion that is scored, and the references it is scored against."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

from vlrl.errors import ConfigError

Part: TypeAlias = Literal["answer", "whole"]

MAX_CHARS = 20_000
"""Longer texts are not an answer: what compares two texts takes time in the product of their lengths."""

# The whole completion, nothing but white space before, between or after; neither part may hold a tag.
THINK_ANSWER = re.compile(
    r"\s*<think>((?:(?!</?think>|</?answer>).)*)</think>\s*<answer>((?:(?!</?think>|</?answer>).)*)</answer>\s*",
    re.DOTALL,
)


def extract_answer(completion: str) -> str | None:
    """The text of <answer> if the whole completion is one think part and one answer part, else None."""
    match = THINK_ANSWER.fullmatch(completion)
    return match.group(2).strip() if match else None


def scored_text(completion: str, part: Part) -> str | None:
    """What of a completion is compared with the answer; None if nothing may be.

    Args:
        completion: what the model wrote.
        part: "answer" is the text of the answer tag if the completion is in the strict think/answer form,
            "whole" is the completion itself; either stripped of white space around it.

    Returns:
        None for a completion out of form, for an empty text and for one of more than MAX_CHARS characters.

    Raises:
        ConfigError: for another `part`.
    """
    if part not in get_args(Part):
        raise ConfigError(f"part={part!r}; give answer or whole")
    said = extract_answer(completion) if part == "answer" else completion.strip()
    return said if said and len(said) <= MAX_CHARS else None


def references(answer: Any) -> tuple[str, ...]:
    """The right answers of a sample as stripped texts: of a single value, or of a list of equally good ones.

    Raises:
        ValueError: if there is none, or one that is empty, too long or neither text nor a number.
    """
    if answer is None:
        raise ValueError("the sample has no 'answer' to compare with")
    several = isinstance(answer, Sequence) and not isinstance(answer, str | bytes)
    values = list(answer) if several else [answer]
    if not values:
        raise ValueError("the sample's answer is an empty list; give at least one reference")
    return tuple(_reference(value) for value in values)


def _reference(value: Any) -> str:
    if not (isinstance(value, str) or (isinstance(value, Real) and math.isfinite(value))):
        raise ValueError(f"the sample's answer holds {value!r:.60}; give text, a number, or a list of them")
    text = str(value).strip()
    if not text:
        raise ValueError("the sample's answer is empty; give the text to compare with")
    if len(text) > MAX_CHARS:
        raise ValueError(f"the sample's answer has {len(text)} characters; at most {MAX_CHARS} are compared")
    return text
