"""Tool calls in a model's text, in the format of Hermes and Qwen's chat templates.

    <tool_call>
    {"name": "zoom", "arguments": {"box": [0, 0, 50, 50]}}
    </tool_call>

The text is data: it is scanned for the tags and what is between them is read as strict JSON, within bounds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vlrl.parsing.strict_json import Unreadable, strict_json

OPENING, CLOSING = "<tool_call>", "</tool_call>"
FORM = f'{OPENING}\n{{"name": "…", "arguments": {{…}}}}\n{CLOSING}'
"""How a call looks, for messages."""

MAX_CHARS = 20_000
"""Longest call, between its tags."""
MAX_DEPTH = 16
"""Deepest nesting of lists and objects, the call's own object included."""
MAX_CALLS = 32
"""Most calls that are read in one text, failed attempts included."""

CallErrorKind: TypeAlias = Literal["unclosed", "unopened", "too_long", "too_many", "json", "form"]

_TAGS = re.compile("</?tool_call>")
ACTION_LABEL = re.compile(r"^[ \t]*Action:", re.MULTILINE)
"""What stands before the action of a message that says its thought without tags."""
_MARKUP = re.compile(r"</?(?:tool_call|think)>")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_WHOLE = 2**53


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A well-formed call of some function; whether there is such a function is not asked here.

    Attributes:
        name: of the function.
        arguments: JSON values; numbers without a fraction are int, the others float, none is infinite.
        span: [start, end) in the text, tags included.
    """

    name: str
    arguments: Mapping[str, Any]
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CallError:
    """Something that was meant as a call and is none.

    Attributes:
        kind: "unclosed" or "unopened": one of the tags is missing; "too_long", "too_many": see MAX_CHARS and
            MAX_CALLS; "json": what stands between the tags is not strict JSON; "form": it is, but no call.
        message: for the model: what is wrong.
        span: [start, end) in the text.
    """

    kind: CallErrorKind
    message: str
    span: tuple[int, int]


def parse_calls(text: str) -> list[ParsedCall | CallError]:
    """Every call in a text, in order, and every failed attempt at one. Time is linear in the text's length.

    Thinking is left out: what comes before the first </think>, or all of a text that opens with <think> and
    never closes it. Tags do not nest, and a tag inside a JSON string is a tag.
    """
    found: list[ParsedCall | CallError] = []
    opened: int | None = None
    for tag in _TAGS.finditer(text, thinking_ends(text)):
        if opened is not None:
            closed = tag.group() == CLOSING
            end = tag.end() if closed else tag.start()
            found.append(_read(text, (opened, end)) if closed else _unclosed((opened, end)))
        elif tag.group() == CLOSING:
            found.append(CallError("unopened", f"{CLOSING} without {OPENING} before it", tag.span()))
        opened = tag.start() if tag.group() == OPENING else None
        if len(found) == MAX_CALLS:
            rest = tag.start() if opened is not None else tag.end()
            if _TAGS.search(text, rest):
                problem = f"more than {MAX_CALLS} calls in one message; the rest was not read"
                found.append(CallError("too_many", problem, (rest, len(text))))
            return found
    if opened is not None:
        found.append(_unclosed((opened, len(text))))
    return found


def write_call(name: str, arguments: Mapping[str, Any]) -> str:
    """The text of a call that `parse_calls` reads."""
    written = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False, allow_nan=False)
    # "<" can only stand inside a string, where JSON also knows it by its number.
    written = _MARKUP.sub(lambda found: "\\u003c" + found.group()[1:], written)
    return f"{OPENING}\n{written}\n{CLOSING}"


def read_json(text: str) -> Any:
    """The value of a strict JSON text, whole numbers as int, the others as finite float.

    Raises:
        Unreadable: for what is not strict JSON or is nested deeper than MAX_DEPTH.
    """
    return _bounded(strict_json(text.strip()), 1)


def tools_prompt(schemas: Sequence[Mapping[str, Any]]) -> str:
    """A description of tools for a system message, where the chat template has none."""
    offered = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
    return (
        f"You can call these functions, given as JSON schemas:\n<tools>\n{offered}\n</tools>\n\n"
        f"To call one, write its name and its arguments as a JSON object, in this form:\n{FORM}\n"
        "The result comes in the next message. Several calls are carried out in their order."
    )


def thinking_ends(text: str) -> int:
    """Where the thinking at a text's beginning ends: 0 if there is none, its length if it never ends."""
    end = text.find("</think>")
    if end >= 0:
        return end + len("</think>")
    return len(text) if text.lstrip().startswith("<think>") else 0


def without_thought(text: str) -> str:
    """A message without its thought; the message itself if it is nothing else."""
    start = thinking_ends(text)
    label = ACTION_LABEL.search(text, start)
    return text[label.start() if label else start :].strip() or text


def _read(text: str, span: tuple[int, int]) -> ParsedCall | CallError:
    start, end = span[0] + len(OPENING), span[1] - len(CLOSING)
    if end - start > MAX_CHARS:
        return CallError("too_long", f"the call has {end - start} characters; {MAX_CHARS} are allowed", span)
    try:
        value = read_json(text[start:end])
    except Unreadable as error:
        return CallError("json", f"not JSON: {error}", span)
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        return CallError("form", 'a call is one JSON object with the keys "name" and "arguments"', span)
    if not isinstance(value["name"], str) or not isinstance(value["arguments"], dict):
        return CallError("form", '"name" must be a string and "arguments" a JSON object', span)
    return ParsedCall(value["name"], value["arguments"], span)


def _bounded(value: Any, depth: int) -> Any:
    """The value with whole numbers as int.

    Raises:
        Unreadable: for too deep a nesting, an infinite number, and a text that UTF-8 cannot write.
    """
    if isinstance(value, list | dict) and depth > MAX_DEPTH:
        raise Unreadable(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, list):
        return [_bounded(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_bounded(key, depth): _bounded(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unreadable("a number is too large")
        return int(value) if value.is_integer() and abs(value) <= _MOST_WHOLE else value
    if isinstance(value, str) and _SURROGATE.search(value):
        raise Unreadable("half of a surrogate pair in a string")
    return value


def _unclosed(span: tuple[int, int]) -> CallError:
    return CallError("unclosed", f"{OPENING} is not closed by {CLOSING}", span)
