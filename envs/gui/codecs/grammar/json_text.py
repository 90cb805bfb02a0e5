"""Actions written as JSON: one object, or one call in <tool_call> tags, each argument with its span."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.parsed_call import Argument, ParsedAction, Span
from vlrl.envs.gui.codecs.grammar.parts import action_part
from vlrl.parsing.strict_json import Unreadable
from vlrl.parsing.tool_calls import CallError, parse_calls, read_json

MAX_MEMBERS = 32
"""Most arguments of an action."""

_MAX_NAME = 64
_VALUE = r"""(?:\[[^\[\]]*\]|\{[^{}]*\}|"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|[^,}\]\s]+)"""
# What a reader of the text would take for something else: tags, and the fence of a block.
_MARKUP = re.compile(r"<(?=/?(?:think|action|answer|tool_call)>)|`(?=``)")


def said_in_object(text: str, key: str, shared: str = "") -> ParsedAction:
    """The one JSON object that a text is after its thinking.

    Args:
        text: the model's.
        key: which of its members names the action.
        shared: a member that may hold the arguments, instead of their standing beside the name.
    """
    span = action_part(text)
    try:
        value = read_json(text[span[0] : span[1]])
    except Unreadable:
        raise ActionError("syntax", "the action is no JSON object", span) from None
    if not isinstance(value, dict):
        raise ActionError("syntax", "the action is no JSON object", span)
    if shared in value and value.keys() <= {key, shared} and isinstance(value[shared], dict):
        value = {**{k: v for k, v in value.items() if k == key}, **value[shared]}
    return parsed_action(text, span, value, key)


def said_in_call(text: str, function: str, key: str) -> ParsedAction:
    """The one call of a function in <tool_call> tags; what stands around it is not read."""
    calls = parse_calls(text)
    if not calls:
        raise ActionError("no_action", "there is no <tool_call>…</tool_call>", (0, len(text)))
    for call in calls:
        if isinstance(call, CallError):
            raise ActionError("syntax", call.message, call.span)
    if len(calls) > 1:
        raise ActionError("syntax", "more than one call in one message", calls[1].span)
    (call,) = calls
    assert not isinstance(call, CallError)
    if call.name != function:
        span = argument_span(text, call.span, "name")
        raise ActionError("unknown_action", f"{call.name[:40]!r} is no function here; call {function}", span)
    return parsed_action(text, call.span, call.arguments, key)


def parsed_action(text: str, span: Span, value: Mapping[str, Any], key: str) -> ParsedAction:
    """The action of a mapping that stands in the text as JSON, or as a Python literal."""
    if len(value) > MAX_MEMBERS:
        raise ActionError("syntax", f"{len(value)} arguments; {MAX_MEMBERS} are allowed", span)
    if key not in value:
        raise ActionError("missing_argument", f"the action has no {key!r}", span)
    arguments = {name: Argument(item, argument_span(text, span, name)) for name, item in value.items()}
    named = arguments.pop(key)
    if not isinstance(named.value, str):
        raise ActionError("bad_argument", f"{key!r} must be a text", named.span)
    return ParsedAction(named.value, span, named.span, arguments)


def argument_span(text: str, span: Span, name: str) -> Span:
    """Where a member stands, key and value; the whole if its key is not spelt out."""
    if len(name) > _MAX_NAME:
        return span
    found = re.compile(rf"""["']{re.escape(name)}["']\s*:\s*{_VALUE}""").search(text, *span)
    return found.span() if found else span


def json_text(value: Any) -> str:
    """A value as JSON in which no tag and no fence can be read."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _MARKUP.sub(lambda found: f"\\u{ord(found.group()):04x}", written)
