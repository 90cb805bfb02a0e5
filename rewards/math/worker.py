"""The process that reads and compares expressions: `python -m` it; lines come in and go out.

It has a limit on its memory, and the kernel ends it when a request takes too much processor time: nothing in
here needs to be interrupted, and a busy machine does not shorten the time.

    {"answer", "said", "unevaluated", "limit_s"} → "read" when the answer has been, then "same" or "other"
                                                   or "unread" instead of both, if the answer cannot be read
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import signal
import sys
from fractions import Fraction
from typing import Any

from math_verify import LatexExtractionConfig, parse, verify
from sympy import Add, And, Basic, Eq, Integer, Mul, Number, Pow, Rational, Set, Symbol, Tuple
from sympy.core.expr import UnevaluatedExpr
from sympy.core.relational import Relational

from vlrl.rewards.math.text import spelled

_MOST_BYTES = 1 << 30
# LaTeX only: math-verify's other reader gives the text to sympy's parse_expr, which runs it (law 10).
_READERS = [LatexExtractionConfig(boxed_match_priority=-1)]
_PERCENT = UnevaluatedExpr(Rational(1, 100))


def main() -> None:
    """Serve until the other end closes, or until too much memory is in use."""
    _, allowed = resource.getrlimit(resource.RLIMIT_AS)
    most = _MOST_BYTES if allowed == resource.RLIM_INFINITY else min(_MOST_BYTES, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)  # what libraries print must fill no pipe
    _is_said(
        _read("x^2+1"), {"answer": "x^2+1", "said": "1+x^2", "unevaluated": True}
    )  # what loads late counts for no request
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, request["limit_s"])  # its default action ends the process
        answer = _read(request["answer"])
        if not answer:
            replies.write("unread\n")
        else:
            replies.write("read\n")
            signal.setitimer(signal.ITIMER_PROF, request["limit_s"])
            replies.write("same\n" if _is_said(answer, request) else "other\n")
        signal.setitimer(signal.ITIMER_PROF, 0)
        if _peak_bytes() > _MOST_BYTES // 2:
            return


def _peak_bytes() -> int:
    """Most memory that this program has used; ru_maxrss would begin with that of the process it came from."""
    with open("/proc/self/status", "rb") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(b"VmHWM:"))


def _read(text: str) -> list[Any]:
    """[expression, text], [text] of what is not an expression, or [] of what cannot be read."""
    try:
        return list(parse(f"${text}$", _READERS, parsing_timeout=None))
    except Exception:  # untrusted text: RecursionError, MemoryError and whatever three libraries raise
        return []


def _is_said(answer: list[Any], request: dict[str, Any]) -> bool:
    if request["said"] is None:
        return False
    said = _read(request["said"])
    if not said:
        return False
    try:
        if request["said"] == request["answer"]:
            return True
        if isinstance(answer[0], str) or isinstance(said[0], str):
            return bool(answer[-1] == said[-1])
        return _agree(answer[0], said[0], request["said"], request["unevaluated"])
    except Exception:  # as above
        return False


def _agree(answer: Any, said: Any, text: str, unevaluated: bool) -> bool:
    """math-verify's judgement, with its holes closed."""
    answer_is_relation = isinstance(answer, Relational | And)
    if isinstance(said, Relational | And) and not answer_is_relation:
        sides = _sides(said)
        texts = text.split("=")[-len(sides) :]
        return bool(sides) and all(
            _agree(answer, side, its, unevaluated) for side, its in zip(sides, texts, strict=True)
        )
    if isinstance(said, Set | Tuple):
        if not isinstance(answer, Set | Tuple) and not answer_is_relation:
            return False
        if len(getattr(said, "_unsorted_args", said.args)) != len(said.args):
            return False
    if not unevaluated and _is_written_out(said):
        if not _is_spelled(said, text):
            return False
    elif not unevaluated and _is_written_out(answer):
        return False
    return bool(verify([answer], [said], timeout_seconds=None))


def _sides(relation: Any) -> list[Basic]:
    """What is said to be equal in x = a = b: a and b; of a = b, both; nothing if it is not an equation."""
    links = relation._unsorted_args if isinstance(relation, And) else (relation,)
    if not all(isinstance(link, Eq) for link in links):
        return []
    sides = [links[0].lhs, *(link.rhs for link in links)]
    return sides[1:] if isinstance(sides[0], Symbol) else sides


def _is_written_out(value: Any) -> bool:
    """Whether it is one number: -3, 0.5, 3/4, 1 3/4, 50%, 1.2·10^3."""
    if isinstance(value, Number):
        return True
    if isinstance(value, Add):  # a mixed fraction
        whole, *rest = value.args
        return len(rest) == 1 and isinstance(whole, Integer) and _is_proper_fraction(rest[0])
    if isinstance(value, Pow):
        return _is_reciprocal(value) or _is_power_of_ten(value)
    if isinstance(value, Mul):
        plain = [f for f in value.args if not (f == -1 or f == _PERCENT or _is_power_of_ten(f))]
        numbers = [f for f in plain if not _is_reciprocal(f)]
        return len(numbers) <= 1 and len(plain) - len(numbers) <= 1 and all(map(_is_written_out, numbers))
    return False


def _is_spelled(value: Any, text: str) -> bool:
    r"""Whether a number is the one that its digits spell: the reader makes 10 of \binom{5}{2}, 7 of 5{2}."""
    magnitude = abs(value.doit())
    if isinstance(magnitude, Rational):
        return any(Fraction(int(magnitude.p), int(magnitude.q)) == each for each in spelled(text))
    return any(math.isclose(float(magnitude), each, rel_tol=1e-12) for each in spelled(text))


def _is_reciprocal(value: Any) -> bool:
    return isinstance(value, Pow) and value.exp == -1 and isinstance(value.base, Number)


def _is_power_of_ten(value: Any) -> bool:
    return isinstance(value, Pow) and value.base == 10 and _is_whole(value.exp)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integer) or (
        isinstance(value, Mul) and all(isinstance(f, Integer) for f in value.args)
    )


def _is_proper_fraction(value: Any) -> bool:
    if isinstance(value, Mul):
        value = value.doit()
    return isinstance(value, Rational) and 0 < value < 1


if __name__ == "__main__":
    main()
