r"""Formatting of an expression's text, and what the LaTeX reader would skip without an error.

math-verify's reader takes \text{30} for a symbol, {30} for a set and AB for a product; it leaves out \ldots,
subscripts and quotes, and adds up numbers that stand side by side. Here the dress is taken off, and a number
is held against its own digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

_FONT = r"\\(?:text(?:rm|bf|it|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|normal)|mbox|bm|boldsymbol|emph)\s*"
_WRAPPER = re.compile(_FONT + r"(?=\{)")
_STYLE = re.compile(r"(^|= ?)\\(?:display|text|(?:script)?script)style(?![A-Za-z])\s*")
_DEGREES = re.compile(
    r"\s*(?:\^\s*(?:\{\s*(?:\\circ|\\degree|°)\s*\}|\\circ|\\degree|°)|\\degree|°)(?![A-Za-z])"
)
_MIXED = re.compile(r"(-?[0-9]+) +([0-9]+) ?/ ?([0-9]+)")
_NAME = re.compile(
    r"(?:m ?)?(?:\\(?:angle|measuredangle|triangle|odot|square) ?)?"
    rf"(?:(?:\\(?:overline|widehat|overrightarrow) ?|{_FONT})\{{ ?[A-Za-z][A-Za-z ]*\}}"
    r"|[A-Z]{1,4}'?(?:_(?:[A-Za-z0-9]|\{[A-Za-z0-9]+\}))?) ?=(?!=) ?"
)

_DROPPED = re.compile(
    r"\\(?:[lcvd]?dots[a-z]?|phantom|[hv]phantom|[hv]space|neg(?:med|thick)space|displaystyle|color)(?![A-Za-z])"
    r"|\.\.|…|⋯"
    r"|[0-9]\s*_"  # a base, or an index: read as the number alone
    r"|[0-9]\s*e\s*[0-9]"
    r"""|[0-9](?:\\!|\\text\s*\{\s*\}|\\?\$|["']|\\mathrm\{th\})+\s*[0-9]"""  # glued together
    r"|\(\s*[-+.0-9]+\s*\)\s*[\[({]*\s*[.0-9]"  # (5)(2): read as 5 + 2
)
_UNIT = re.compile(_FONT + r"\{[^{}0-9]*\}(?:\s*\^\s*(?:[0-9]|\{\s*[0-9]\s*\}))?")
_SHORT_FRACTION = re.compile(r"frac\s*([0-9])\s*([0-9])")
_POWER = re.compile(r"(?:\\times|\\cdot|\*)?\s*10\s*\^\s*(?:([0-9])|\{\s*([-+]?[0-9]+)\s*\})")
_NUMBER = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?(?:E[-+]?[0-9]{1,3})?|\.[0-9]+"
)
_MOST_POWER = 4_000


def undressed(text: str) -> str:
    r"""An expression without what does not change its value.

    A \text{…} or font command around all of it if it holds a digit, braces around all of it unless they may
    be meant as a set's, the size of print in front, degrees in one spelling, 1 1/2 as 1\frac{1}{2}.
    """
    text = _DEGREES.sub(r"^\\circ", text)
    while True:
        text = _STYLE.sub(r"\1", text)
        wrapper = _WRAPPER.match(text)
        inside = _in_braces(text[wrapper.end() if wrapper else 0 :])
        if inside is None or (not any(c.isdigit() for c in inside) if wrapper else _is_list(inside)):
            break
        text = inside.strip()
    mixed = _MIXED.fullmatch(text)
    return rf"{mixed[1]}\frac{{{mixed[2]}}}{{{mixed[3]}}}" if mixed else text


def unnamed(text: str) -> str:
    r"""An expression without a name for its value: AB = 30, m\angle ABC = 30, \text{area} = 30."""
    while name := _NAME.match(text):
        text = undressed(text[name.end() :])
    return text


def is_passed_over(text: str) -> bool:
    r"""Whether the reader would leave out a part of the text: 3 \ldots 4 is read as 7, 101_2 as 101."""
    return _DROPPED.search(text) is not None


def spelled(text: str) -> Iterator[Fraction]:
    """The magnitudes that a written number can have, by its digits: a, a/b, a b/c, times 10^k."""
    text = _SHORT_FRACTION.sub(r"\1/\2 ", _UNIT.sub(" ", text))
    scale = Fraction(1)
    if power := _POWER.search(text):
        exponent = int(power[1] or power[2])
        if abs(exponent) > _MOST_POWER:
            return
        scale = Fraction(10) ** exponent
        text = text[: power.start()] + " " + text[power.end() :]
    numbers = [Fraction(each.replace(",", "")) for each in _NUMBER.findall(text)]
    if not numbers and power:
        numbers = [Fraction(1)]
    if not 1 <= len(numbers) <= 3 or (len(numbers) > 1 and not numbers[-1]):
        return
    whole = numbers[0] if len(numbers) != 2 else Fraction(0)
    part = numbers[-2] / numbers[-1] if len(numbers) > 1 else Fraction(0)
    yield (whole + part) * scale
    if "%" in text or re.search(r"percent|pct", text):
        yield (whole + part) * scale / 100


def _in_braces(text: str) -> str | None:
    """What a text holds that begins with { and ends with its }; None for another."""
    if not text.startswith("{"):
        return None
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            return text[1 : brace.start()] if brace.end() == len(text) else None
    return None


def _is_list(text: str) -> bool:
    r"""Whether a text in braces may be a set's elements, or what \choose takes; 1,234 is one number."""
    return bool(
        re.search(
            r"[,;]|\\(?:choose|over|atop|brace|brack)", re.sub(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", "", text)
        )
    )
