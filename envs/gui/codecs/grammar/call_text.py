"""Actions written as one Python call, `pyautogui.click(100, y=200)`.

The call is cut up by its brackets and commas here, and each argument read as a literal by
`vlrl.parsing.literals`. Nothing is looked up and nothing is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.parsed_call import Argument, ParsedAction, Span
from vlrl.envs.gui.codecs.grammar.parts import stripped
from vlrl.parsing.literals import Call, read_literal
from vlrl.parsing.strict_json import Unreadable

MAX_ARGUMENTS = 16
"""Most arguments of a call."""
MAX_DEPTH = 4
"""Deepest nesting of brackets, the call's own included."""

Parameters = Sequence[str]
"""Names of a function's parameters in their order; "*keys" takes all that are left."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_TOKEN = re.compile(
    r"""(?P<string>'{3}(?:[^\\]|\\.)*?'{3}|"{3}(?:[^\\]|\\.)*?"{3}"""
    r"""|'(?:[^'\\\n]++|\\.)*+'|"(?:[^"\\\n]++|\\.)*+")"""
    r"""|(?P<quote>['"])|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)|(?P<other>[^'"()\[\]{},]+)""",
    re.DOTALL,
)
_KEYWORD = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)")


@dataclass(frozen=True, slots=True)
class Written:
    """A call cut up: its dotted name, and the spans of its arguments' texts."""

    name: str
    name_span: Span
    arguments: Sequence[Span]
    span: Span


def cut_call(text: str, span: Span) -> Written:
    """The call that begins where the span does; its own span has its end.

    Raises:
        ActionError: kind "syntax" if there is none, or it is not closed.
    """
    start, end = span
    name = _NAME.match(text, start, end)
    if not name or not text.startswith("(", name.end(), end):
        raise ActionError("syntax", "the action is no call, such as name(1, 2)", span)
    arguments, depth, begun = [], 0, name.end() + 1
    for token in _TOKEN.finditer(text, name.end(), end):
        kind = token.lastgroup
        if kind == "quote":
            raise ActionError("syntax", "a quote is not closed", (token.start(), end))
        depth += (kind == "open") - (kind == "close")
        if depth > MAX_DEPTH:
            raise ActionError("syntax", f"brackets nest deeper than {MAX_DEPTH}", token.span())
        if (kind == "comma" and depth == 1) or depth == 0:
            arguments.append((begun, token.start()))
            begun = token.end()
        if len(arguments) > MAX_ARGUMENTS:
            raise ActionError("syntax", f"more than {MAX_ARGUMENTS} arguments", (begun, end))
        if depth == 0:
            if not text[slice(*arguments[-1])].strip():  # name(), or a comma before the closing bracket
                arguments.pop()
            return Written(name.group(), name.span(), arguments, (start, token.end()))
    raise ActionError("syntax", "a bracket is not closed", (name.end(), end))


def said_in(text: str, call: Written, functions: Mapping[str, Parameters]) -> ParsedAction:
    """A call with its arguments bound to the parameters of a function of its name, as Python would.

    Raises:
        ActionError: kind "unknown_action", or "bad_argument" for what is not a literal or fits no parameter.
    """
    if call.name not in functions:
        reason = f"{call.name[:40]!r} is no action here"
        raise ActionError("unknown_action", reason, call.name_span)
    names = functions[call.name]
    rest = next((name[1:] for name in names if name.startswith("*")), "")
    bound: dict[str, Argument] = {}
    taken: list[Argument] = []
    for position, argument_span in enumerate(call.arguments):
        start, end = stripped(text, argument_span)
        keyword = _KEYWORD.match(text, start, end)
        argument = _read(text, (keyword.end() if keyword else start, end))
        if not keyword and rest:
            taken.append(argument)
            continue
        name = keyword.group(1) if keyword else (names[position] if position < len(names) else "")
        if name not in names or name in bound:
            raise ActionError("bad_argument", f"{call.name[:40]} takes {', '.join(names)}", (start, end))
        bound[name] = argument
    if taken:
        span = taken[0].span[0], taken[-1].span[1]
        bound[rest] = Argument([argument.value for argument in taken], span)
    return ParsedAction(call.name, call.span, call.name_span, bound)


def _read(text: str, span: Span) -> Argument:
    try:
        value = read_literal(text[slice(*span)])
    except Unreadable:
        raise ActionError("bad_argument", "an argument is not a number, text or list", span) from None
    if isinstance(value, Call):
        raise ActionError("bad_argument", "a call within a call", span)
    return Argument(value, span)
