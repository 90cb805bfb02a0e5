"""Conversations: messages with parts, and the media taken out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.errors import DataError

Message = Mapping[str, Any]


def message_of(role: str, text: str) -> dict[str, Any]:
    """A message of one text part."""
    return {"role": role, "content": [{"type": "text", "text": text}]}


def text_of(message: Message) -> str:
    """All text of a message."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def media_parts(message: Message) -> list[Mapping[str, Any]]:
    """The parts of a message that are media."""
    content = message["content"]
    return [] if isinstance(content, str) else [part for part in content if part["type"] != "text"]


def split_parts(
    messages: Sequence[Message], where: str
) -> tuple[tuple[Message, ...], list[Mapping[str, Any]]]:
    """Messages as a chat template takes them, and the media parts in the order in which they stand.

    Raises:
        DataError: for a message or part of another form.
    """
    plain, media = [], []
    for message in messages:
        try:
            role, content = message["role"], message["content"]
            # Some published templates leave a string out without a message.
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            media += [part for part in parts if part["type"] != "text"]
            content = [_plain(part, where) for part in parts]
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{where}: {type(error).__name__} {error} in a message; it needs 'role' and 'content', "
                "a string or a list of {'type': 'text', 'text': …}, {'type': 'image', 'image': …}, "
                "{'type': 'video', 'video': …} and {'type': 'audio', 'audio': …}"
            ) from error
        plain.append({"role": role, "content": content})
    return tuple(plain), media


def _plain(part: Mapping[str, Any], where: str) -> dict[str, Any]:
    kind = part["type"]
    if kind == "text":
        if not isinstance(part["text"], str):
            raise DataError(f"{where}: a text part holds {part['text']!r}, which is not a string")
        return {"type": "text", "text": part["text"]}
    if kind not in ("image", "video", "audio"):
        raise DataError(f"{where}: part type {kind!r} is not one of text, image, video, audio")
    if part[kind] is None:
        raise DataError(f"{where}: an {kind} part holds nothing")
    return {"type": kind}
