"""A function's signature, read for a caller that passes arguments by name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from vlrl.errors import ConfigError


def named(parameters: Sequence[inspect.Parameter]) -> tuple[frozenset[str], bool]:
    """Names of the parameters, and whether there are **keywords."""
    rest = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return frozenset(p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)), rest


def is_async(function: Any) -> bool:
    """True if a call gives a coroutine; of an object too."""
    if inspect.iscoroutinefunction(function):
        return True
    return callable(function) and inspect.iscoroutinefunction(function.__call__)


def require_options(what: str, options: Iterable[str], parameters: Sequence[inspect.Parameter]) -> None:
    """Law 9: refuse an option that a function would never see.

    Args:
        what: has the options, for the message: "reward 'math'".
        options: their names.
        parameters: of the function, those that options may set.

    Raises:
        ConfigError: naming the nearest parameter.
    """
    known, takes_rest = named(parameters)
    for key in options:
        if not takes_rest and key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"{what} takes no option {key!r}; its parameters are "
                f"{', '.join(p.name for p in parameters) or 'none'}{hint}"
            )
