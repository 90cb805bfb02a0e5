"""The question of a row, for null policies: its words, its options, and its answer or where it lies."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.check.data.nulls import AskedRow, Place
from vlrl.coordinates import Box, Point
from vlrl.parsing.actions import action_of, read_action
from vlrl.parsing.extract import extract_answer
from vlrl.parsing.places import boxes_of, read_boxes
from vlrl.parsing.strict_json import Unreadable
from vlrl.parsing.text import normalize
from vlrl.types import Row

MAX_ANSWER_CHARS = 200
"""Longer answers are not compared: no constant would meet them."""

_OPTION = re.compile(r"^\s*\(?([A-J])[.):]\s*(\S.*?)\s*$", re.MULTILINE)
_OPTION_KEYS = ("choices", "options")


def asked_of(row: Row, size: tuple[int, int] | None) -> AskedRow | None:
    """What a row asks; None where nothing can be said of its answer.

    Args:
        row: of a dataset.
        size: (height, width) of its first medium in original pixels; None without one.
    """
    answer = row.get("answer")
    if row.get("env") or answer is None:
        return None
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    question = " ".join(unicodedata.normalize("NFKC", _words(row["messages"])).casefold().split())
    if size is not None and (place := _place(answer, size)) is not None:
        kind, shares = place
        return AskedRow(kind, question, place=shares, aspect=size[1] / size[0])  # type: ignore[arg-type]
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        answer = answer[0] if answer and all(isinstance(each, str | int | float) for each in answer) else None
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return None
    text = str(answer).strip()
    text = (extract_answer(text) or text).removeprefix("<answer>").removesuffix("</answer>").strip()
    if not text or len(text) > MAX_ANSWER_CHARS:
        return None
    options = _options(row)
    right = _right_option(text, options)
    if right is not None:
        return AskedRow("choice", question, str(right), tuple(options))
    return AskedRow("text", question, normalize(text))


def _words(messages: Sequence[Mapping[str, Any]]) -> str:
    """What all but the system prompt say."""
    said = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] != "system":
            said += [str(part.get("text", "")) for part in parts if part["type"] == "text"]
    return "\n".join(said)


def _options(row: Row) -> list[str]:
    """Those of the metadata, else the lines of the prompt that begin with A, B, C …."""
    metadata = row.get("metadata") or {}
    for key in _OPTION_KEYS:
        given = metadata.get(key)
        if isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 1:
            return [str(option) for option in given]
    found = _OPTION.findall(_words(row["messages"]))
    in_order = [letter for letter, _ in found] == list("ABCDEFGHIJ")[: len(found)]
    return [option for _, option in found] if len(found) > 1 and in_order else []


def _right_option(answer: str, options: Sequence[str]) -> int | None:
    """The number of the option that a letter or an option's words name."""
    if not options:
        return None
    letter = answer.strip("().: ")
    if len(letter) == 1 and 0 <= ord(letter.upper()) - ord("A") < len(options):
        return ord(letter.upper()) - ord("A")
    same = [number for number, option in enumerate(options) if normalize(option) == normalize(answer)]
    return same[0] if len(same) == 1 else None


def _place(answer: Any, size: tuple[int, int]) -> tuple[str, Place] | None:
    """("click" or "box", shares of the image's sides) of an answer in original pixels."""
    action = box = None
    try:
        action = read_action(answer) if isinstance(answer, str) else action_of(answer)
    except (Unreadable, ValueError, TypeError):
        try:
            boxes = read_boxes(answer) if isinstance(answer, str) else boxes_of(answer)
            box = boxes[0].box if len(boxes) == 1 else None
        except (Unreadable, ValueError, TypeError):
            return None
    target = box if action is None else action.places.get("point")
    if target is None:
        return None
    height, width = size
    shares = target.map(lambda x: x / width, lambda y: y / height)
    if isinstance(shares, Box):
        corners = (shares.x0, shares.y0, shares.x1, shares.y1)
    elif isinstance(shares, Point):
        corners = (shares.x, shares.y)  # type: ignore[assignment]
    if max(corners) > 1.05 or min(corners) < -0.05:  # of another frame: nothing is known of it
        return None
    return ("box" if action is None else "click"), corners
