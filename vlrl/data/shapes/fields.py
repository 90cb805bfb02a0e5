"""What the shapes share: how a record's columns are taken, and how messages and their parts are read.

A shape takes a record's fields and pops what it uses; what is left becomes metadata. It returns `messages`
(content is text, or a list of parts) and, as far as the record has them, `images`, `videos` and `audios` (to
be put where the text says <image>, <video> and <audio>) and the fields of KEPT. What it raises is reported
with the place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]
Shape: TypeAlias = Callable[[Fields], dict[str, Any]]
Message: TypeAlias = dict[str, Any]

KEPT = ("id", "answer", "target", "rejected", "env", "tools", "task", "metadata", "structured_outputs")
"""Taken by every shape from the column of the same name."""

ANSWER_TAGS = re.compile(r"\s*<answer>\s*(.*?)\s*</answer>\s*", re.DOTALL)


def system_of(fields: Fields) -> list[Message]:
    """The `system` column as the message that a conversation begins with, if there is one."""
    system = fields.pop("system", None)
    return [{"role": "system", "content": system}] if system else []


def turns_of(value: Any, role: str, column: str) -> list[dict[str, Any]]:
    """Text as one turn of `role`, messages as they are."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return [message_of(message) for message in objects_of(value, column)]


def untagged(solution: Any) -> Any:
    """A solution without the answer tags around its text."""
    match = ANSWER_TAGS.fullmatch(solution) if isinstance(solution, str) else None
    return match[1] if match else solution


def kept_columns(fields: Fields) -> dict[str, Any]:
    """The columns that mean the same everywhere, and the media as a list of each kind."""
    row = {name: fields.pop(name) for name in KEPT if name in fields}
    if "tools" in row:
        row["tools"] = objects_of(row["tools"], "tools")
    for kind in ("image", "video", "audio"):
        media = [fields.pop(name) for name in (kind, f"{kind}s") if name in fields]
        row[f"{kind}s"] = [
            item for value in media for item in (value if isinstance(value, list) else [value])
        ]
    return row


def objects_of(value: Any, column: str) -> list[dict[str, Any]]:
    """A column that is a list of objects, or JSON text of one, without the nulls that tables fill in."""
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TypeError(f"{column!r} must be a list of objects")
    return [_without_nulls(item) for item in value]


def message_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message whose content is text, or parts in vlrl's form."""
    role, content = message["role"], message["content"]
    if not isinstance(role, str):
        raise TypeError(f"'role' must be text, not {type(role).__name__}")
    if not isinstance(content, str):
        content = [_part(part) for part in objects_of(content, "content")]
    return {**message, "content": content}


def _without_nulls(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if value is not None}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A content part in vlrl's form."""
    kind = part["type"]
    if kind == "input_audio":  # OpenAI's: base64 of a file
        sound = part[kind]
        return {"type": "audio", "audio": sound["data"] if isinstance(sound, Mapping) else sound}
    if kind in ("image_url", "video_url", "audio_url"):
        url = part[kind]
        medium = kind.removesuffix("_url")
        return {"type": medium, medium: url["url"] if isinstance(url, Mapping) else url}
    if kind not in ("text", "image", "video", "audio"):
        raise ValueError(
            f"part type {kind!r} is not one of text, image, video, audio, image_url, video_url, audio_url, "
            "input_audio"
        )
    if kind == "text" and not isinstance(part["text"], str):
        raise TypeError(f"'text' of a part must be text, not {type(part['text']).__name__}")
    return dict(part)
