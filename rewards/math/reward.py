r"""The reward for mathematics: math-verify in a process of its own, so that no expression can stop the run.

math-verify's own time limit is a signal handler: it works in the main thread only, and never inside a power
of integers, which is one call of C. Here the kernel ends the process (`vlrl.rewards.math.worker`).
"""

from __future__ import annotations

import functools
import re
from typing import Any, Literal, TypeAlias, get_args

from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, references, scored_text
from vlrl.rewards.math.pool import same_value
from vlrl.rewards.math.text import is_passed_over, undressed, unnamed
from vlrl.scoring.author import reward

Boxed: TypeAlias = Literal["allowed", "required", "last"]

MAX_EXPRESSION_CHARS = 2_000
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"))
_TWO_NUMBERS = re.compile(r"[0-9](?:\s|~|\\[ ;:,!]|\\q?quad)+[0-9]")
_THOUSANDS = re.compile(r"(?<=[0-9])(?:\\[,!]|\{,\})(?=[0-9]{3}(?![0-9]))")
_DELIMITER_INSIDE = re.compile(r"(?<!\\)(?:\$|\\[()\[\]])")


@reward(range=(0.0, 1.0))
def math(
    completion: str,
    answer: Any,
    *,
    boxed: Boxed = "allowed",
    unevaluated: bool = False,
    limit_s: float = 2.0,
    part: Part = "answer",
) -> float:
    r"""1 if the completion's expression has the answer's value, else 0.

    [verify(answer, expression)] of math-verify: numbers, fractions, roots, symbols, equations, intervals,
    sets, matrices in LaTeX or plain notation; decimals agree to six places; units are left out. Range {0,
    1}; of several references any will do. Source: math-verify 0.9, as TRL's accuracy reward uses it, with
    these holes closed: a false chain ("7 = 8") does not have the value of its last side; a list is no
    number, also if its elements are all the same, nor are two numbers in a row their sum; nothing is counted
    twice in a set; nothing is passed over ("3 \ldots 4" is not 7); and where the answer is a plain number, so
    must the expression be, unless `unevaluated`: "4+4" and \binom{5}{2} restate the question. Fonts, braces
    and a name around a value (\text{30}, {30}, AB = 30) do not count (`vlrl.rewards.math.text`). Empty text,
    words around an expression that is not boxed, all answers at once, several boxes and the answer repeated
    score 0; so does what takes more than `limit_s` of a processor or a gigabyte, or has more than 2,000
    characters.

    Args:
        completion: what the model wrote.
        answer: an expression as text, a number, or a list of equally good ones.
        boxed: "allowed": the text is the expression, or holds it in its only \boxed{}; "required": it must
            hold exactly one; "last": the last of at least one counts, as in mathruler and EasyR1.
        unevaluated: for a plain number, also accept an expression of its value: 2^3, 4+4, \sqrt{64} for 8.
        limit_s: seconds of processor time for reading the answer, and again for the expression.
        part: where the expression is; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample has no answer, or one that cannot be read in time.
        ConfigError: for another value of `boxed`, or a limit that is not a positive number.
    """
    if boxed not in get_args(Boxed):
        raise ConfigError(f"boxed={boxed!r}; it is allowed, required or last")
    if not 0 < limit_s <= 60:
        raise ConfigError(f"limit_s={limit_s}; give seconds between 0 and 60")
    right = [_known(text) for text in references(answer)]
    text = scored_text(completion, part)
    said = _expression(text, boxed) if text is not None else None
    return float(any(_same(reference, said, unevaluated, limit_s) for reference in right))


def _known(text: str) -> str:
    found = _expression(text, "allowed")
    if found is None:
        raise ValueError(f"the sample's answer {text!r:.60} is not one expression of up to 2,000 characters")
    return found


def _expression(text: str, boxed: Boxed) -> str | None:
    """The expression in a text, without its delimiters; None if there is not exactly the one asked for."""
    num_boxes = text.count(r"\boxed")
    if num_boxes > 1 and boxed != "last":
        return None
    if num_boxes:
        text = _braced(text[text.rindex(r"\boxed") + len(r"\boxed") :].lstrip())
    elif boxed != "allowed":
        return None
    text = " ".join(text.split()).removesuffix(".").strip()
    for left, right in _DELIMITERS:
        if len(text) >= len(left + right) and text.startswith(left) and text.endswith(right):
            text = text[len(left) : -len(right)].strip()
            break
    text = undressed(_THOUSANDS.sub("", text))
    usable = 0 < len(text) <= MAX_EXPRESSION_CHARS and not _DELIMITER_INSIDE.search(text)
    return text if usable else None


def _braced(text: str) -> str:
    """What the first pair of braces of a text holds; empty if it begins with none or never closes it."""
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if brace.group() == "}" and depth <= 0:
            return text[1 : brace.start()] if text.startswith("{") else ""
    return ""


@functools.lru_cache(maxsize=4096)
def _same(answer: str, said: str | None, unevaluated: bool, limit_s: float) -> bool:
    if said is not None and ("=" in answer) != ("=" in said):
        answer, said = unnamed(answer), unnamed(said)
    if is_passed_over(answer):  # what it says cannot be read, so it must be said in the same words
        return said is not None and "".join(said.split()) == "".join(answer.split())
    if said is not None and is_passed_over(said):
        said = None
    if said is not None and _TWO_NUMBERS.search(said) and not _TWO_NUMBERS.search(answer):
        said = None  # math-verify adds them up
    if said is not None and _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(said):
        return int(answer) == int(said)  # what counting asks for needs no process
    return same_value(answer, said, unevaluated, limit_s)
