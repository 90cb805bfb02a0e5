"""Code of others: what it raised, in words, and whether what it returned is a number."""

from __future__ import annotations

import math
import traceback
from dataclasses import dataclass
from typing import Any

MESSAGE_CHARS, TRACE_CHARS = 500, 4000
"""Most that is kept of a message and of a traceback."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that gave no result: why, in a line, and the traceback if there is one."""

    reason: str
    trace: str = ""


def failure_of(error: BaseException) -> Failure:
    """What a stranger's code raised."""
    try:
        text = str(error)[:MESSAGE_CHARS]
    except Exception:  # its __str__ is a stranger's too
        text = "?"
    trace = "".join(traceback.format_exception(error, limit=-8, chain=False))
    kind = type(error).__name__
    return Failure(f"{kind}: {text}" if text else kind, trace[-TRACE_CHARS:])


def finite(value: Any, name: str) -> float:
    """A finite float; numpy's and torch's scalars are numbers too.

    Raises:
        ValueError: for anything else, naming it.
    """
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if not isinstance(value, bool | int | float):
        raise ValueError(f"{name}={repr(value)[:100]} is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} is an integer too large for a float") from None
    if not math.isfinite(number):
        raise ValueError(f"{name}={number}")
    return number
