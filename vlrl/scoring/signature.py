"""What a function's signature says to a caller that goes by names."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any


def named(parameters: Sequence[inspect.Parameter]) -> tuple[frozenset[str], bool]:
    """Names of the parameters, and whether there are **keywords."""
    rest = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return frozenset(p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)), rest


def is_async(function: Any) -> bool:
    """True if a call gives a coroutine; of an object too."""
    if inspect.iscoroutinefunction(function):
        return True
    return callable(function) and inspect.iscoroutinefunction(function.__call__)
