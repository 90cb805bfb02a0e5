"""Media into the text: where it says <image>, <video> and <audio>, or else before it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.errors import DataError

MARKER = re.compile("<(image|video|audio)>")


def place_media(
    messages: Sequence[Mapping[str, Any]], media: Mapping[str, Sequence[Any]], place: str
) -> list[dict[str, Any]]:
    """Fill the slots of the user's turns with a row's media, in order.

    Slots are the markers <image>, <video> and <audio> in text, and parts such as {"type": "image"} that name
    no image. Media of a kind that has no slot go before the first user turn's text. Parts that name their
    medium stay; where content is a list of parts and the row has no media columns, "<image>" is mere text.

    Args:
        messages: of a row.
        media: those of each kind, in order.
        place: of the row, for errors.

    Raises:
        DataError: naming the place and both numbers, if slots and media differ in number.
    """
    turns = [dict(message) for message in messages]
    users = [turn for turn in turns if turn["role"] == "user"]
    queues = {kind: list(media.get(kind, ())) for kind in ("image", "video", "audio")}
    contents = [_with_slots(turn["content"], in_parts=any(queues.values())) for turn in users]
    unmarked: list[dict[str, Any]] = []
    for kind, of_kind in queues.items():
        found = sum(_is_slot(part) and part["type"] == kind for content in contents for part in content)
        if found != len(of_kind) and (found or not users):
            raise DataError(
                f"{place}: {found} <{kind}> markers in the user's text for {len(of_kind)} {kind}s; write one "
                f"marker for each, or none: the {kind}s then go before the text"
            )
        if not found:
            unmarked += [{"type": kind, kind: medium} for medium in of_kind]
            queues[kind] = []
    for number, (turn, content) in enumerate(zip(users, contents, strict=True)):
        leading = unmarked if number == 0 else []
        filled = leading + [
            {**part, part["type"]: queues[part["type"]].pop(0)} if _is_slot(part) else part
            for part in content
        ]
        if not isinstance(turn["content"], str) or any(part["type"] != "text" for part in filled):
            turn["content"] = filled
    return turns


def _with_slots(content: str | Sequence[Mapping[str, Any]], *, in_parts: bool) -> list[dict[str, Any]]:
    """Content as parts, each marker one of its own."""
    if isinstance(content, str):
        content, in_parts = [{"type": "text", "text": content}], True
    parts: list[dict[str, Any]] = []
    for part in content:
        if part["type"] == "text" and in_parts:
            pieces = MARKER.split(part["text"])  # text, kind, text, kind, …, text
            for index, piece in enumerate(pieces):
                if index % 2:
                    parts.append({"type": piece})
                elif piece:
                    parts.append({**part, "text": piece})
        else:
            parts.append(dict(part))
    return parts


def _is_slot(part: Mapping[str, Any]) -> bool:
    return part["type"] != "text" and part["type"] not in part
