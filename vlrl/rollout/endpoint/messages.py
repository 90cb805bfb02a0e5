"""Messages of a request, as a processor takes them, each with a key that is equal if they say the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlrl.parsing.tool_calls import write_call
from vlrl.rollout.endpoint.refusal import Refused

_ROLES = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
}  # fmt: skip
_URLS = ("data:", "http://", "https://")
_OF_A_CALL = "a tool call is {'id': …, 'type': 'function', 'function': {'name': …, 'arguments': a JSON text}}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as OpenAI's format has it; arguments is a JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        role: as chat templates know it: system, user, assistant or tool.
        parts: {"type": "text", "text": …} and {"type": "image", "image": a URL}; an assistant's calls are
            text, as the model would have written them.
        key: equal for messages that say the same.
    """

    role: str
    parts: tuple[Mapping[str, Any], ...]
    key: str


def read_messages(value: Any) -> tuple[Message, ...]:
    """Read a request's messages.

    Raises:
        Refused: for what is none, and for a conversation that does not end where the assistant is to speak.
    """
    if not isinstance(value, list) or not value:
        raise Refused("messages must be a list of one or more messages", field="messages")
    found = tuple(_message(message, f"messages[{index}]") for index, message in enumerate(value))
    if found[-1].role == "assistant":
        raise Refused(
            "the last message is the assistant's own, and continuing it is not supported; end with a message "
            "of the user or a tool",
            code="unsupported",
            field="messages",
        )
    return found


def assistant_key(content: str, calls: Sequence[ToolCall]) -> str:
    """The key of what an assistant said: calls that were parsed and written again are still the same."""
    return _key("assistant", content, [[call.id, call.name, _parsed(call.arguments)] for call in calls])


def _message(value: Any, where: str) -> Message:
    role = _ROLES.get(str(value.get("role"))) if isinstance(value, dict) else None
    if role is None:
        raise Refused(f"{where} needs a role: {', '.join(_ROLES)}", field=where)
    content = value.get("content")
    if role != "assistant":
        parts = _parts(content, where)
        about = value.get("tool_call_id") if role == "tool" else None
        if role == "tool" and not isinstance(about, str):
            raise Refused(f"{where}, a tool's, needs the tool_call_id that it answers", field=where)
        return Message(role, parts, _key(role, parts, about))
    parts = _parts(content, where) if content else ()
    if any(part["type"] != "text" for part in parts):
        raise Refused(f"{where}: an assistant's message holds text alone", field=where)
    calls = [_call(call, where) for call in _listed(value.get("tool_calls"), where)]
    text = "".join(part["text"] for part in parts)
    written = "\n".join(filter(None, [text, *(write_call(c.name, _parsed(c.arguments)) for c in calls)]))
    return Message(role, ({"type": "text", "text": written},), assistant_key(text, calls))


def _parts(content: Any, where: str) -> tuple[Mapping[str, Any], ...]:
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    if not isinstance(content, list):
        raise Refused(f"{where}: content must be a string or a list of parts", field=where)
    return tuple(_part(part, where) for part in content)


def _part(part: Any, where: str) -> Mapping[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    image = part.get("image_url") if kind == "image_url" else None
    url = image.get("url") if isinstance(image, dict) else None
    if isinstance(url, str) and url.startswith(_URLS):  # anything else might name a file of this machine
        return {"type": "image", "image": url}
    raise Refused(
        f"{where}: a part is {{'type': 'text', 'text': …}}, or {{'type': 'image_url', 'image_url': "
        "{'url': …}} with a data: URL, or an http(s) one of a host in media.allowed_hosts",
        field=where,
    )


def _listed(calls: Any, where: str) -> list[Any]:
    if calls is not None and not isinstance(calls, list):
        raise Refused(f"{where}: tool_calls must be a list", field=where)
    return calls or []


def _call(value: Any, where: str) -> ToolCall:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict):
        raise Refused(f"{where}: {_OF_A_CALL}", field=where)
    call = (value.get("id"), function.get("name"), function.get("arguments"))
    if not all(isinstance(item, str) for item in call) or not isinstance(_parsed(str(call[2])), dict):
        raise Refused(f"{where}: {_OF_A_CALL}", field=where)
    return ToolCall(*map(str, call))


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _key(*said: Any) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
