"""Which part of a model's text is its action. One rule for every grammar: a text holds exactly one action.

Thinking does not count: what comes before </think>, and before the line that begins with "Action:". What is
left is the action and nothing else, but for ``` around it.
"""

from __future__ import annotations

import re
from itertools import islice

from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.parsed_call import Span
from vlrl.parsing.tool_calls import ACTION_LABEL, thinking_ends

_FENCE = "```"
_LANGUAGE = re.compile(r"[A-Za-z0-9_]*[ \t]*\n")


def action_part(text: str) -> Span:
    """Where the action stands that is the rest of a text after its thinking, blanks left out.

    Raises:
        ActionError: kind "no_action" if there is nothing, "syntax" for two labels or more ``` than a pair.
    """
    start, end = thinking_ends(text), len(text)
    labels = list(islice(ACTION_LABEL.finditer(text, start), 2))
    if len(labels) > 1:
        raise ActionError("syntax", "more than one action in one message", (labels[1].start(), end))
    if labels:
        start = labels[0].end()
    span = stripped(text, _unfenced(text, (start, end)))
    if span[0] == span[1]:
        raise ActionError("no_action", "there is no action", (min(start, end), end))
    return span


def tagged_part(text: str, opening: str, closing: str) -> Span:
    """Where the action stands between its two tags, which must be there once.

    Raises:
        ActionError: kind "no_action" if there are none, "syntax" for one of them, or for more than a pair.
    """
    first = thinking_ends(text)
    start = text.find(opening, first)
    if start < 0:
        raise ActionError("no_action", f"there is no {opening}…{closing}", (first, len(text)))
    inside = start + len(opening)
    end = text.find(closing, inside)
    if end < 0:
        raise ActionError("syntax", f"{opening} is not closed by {closing}", (start, len(text)))
    for tag, after in ((opening, inside), (closing, end + len(closing))):
        again = text.find(tag, after)
        if again >= 0:
            reason = f"more than one {opening}…{closing} in one message"
            raise ActionError("syntax", reason, (again, again + len(tag)))
    return inside, end


def stripped(text: str, span: Span) -> Span:
    """A span without the blanks at its ends."""
    part = text[span[0] : span[1]]
    start = span[0] + len(part) - len(part.lstrip())
    return start, max(start, span[0] + len(part.rstrip()))


def _unfenced(text: str, span: Span) -> Span:
    """What stands between a pair of ```, if there is one; one at the end closes an earlier one."""
    start, end = span
    first = text.find(_FENCE, start, end)
    if first < 0:
        return span
    inside = first + len(_FENCE)
    second = text.find(_FENCE, inside, end)
    if second < 0:
        if text[inside:end].strip():
            raise ActionError("syntax", "``` is not closed", (first, end))
        return start, first
    if text.find(_FENCE, second + len(_FENCE), end) >= 0:
        raise ActionError("syntax", "more than one ``` block in one message", (second + len(_FENCE), end))
    language = _LANGUAGE.match(text, inside, second)
    return (language.end() if language else inside), second
