"""A function's signature, read for a caller that passes arguments by name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def typed_options(what: str, function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a function's annotations want them: a mistake is told before anything runs.

    An option without an annotation, or with one that only a type checker understands, stays as it is.

    Args:
        what: has the options, for the message: "reward 'math'".
        function: that gets them by name.
        options: of names that it takes.

    Raises:
        ConfigError: for a value that is no such thing.
    """
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except (NameError, AttributeError, TypeError, ValueError):  # names under TYPE_CHECKING, no signature
        return dict(options)
    return {key: _typed(what, key, value, parameters.get(key)) for key, value in options.items()}


def _typed(what: str, key: str, value: Any, parameter: inspect.Parameter | None) -> Any:
    wanted = inspect.Parameter.empty if parameter is None else parameter.annotation
    if wanted is inspect.Parameter.empty or isinstance(wanted, str):  # of a signature that was put together
        return value
    # Only here: it is two fifths of what a worker of rewards imports, and few have such options.
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(wanted)
    except (PydanticSchemaGenerationError, PydanticUserError):  # a class that pydantic does not know
        return value
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"[{part!r}]" for part in first["loc"])
        problem = first["msg"][:1].lower() + first["msg"][1:]
        raise ConfigError(f"{what}: its option {key}={value!r}: {key}{place}: {problem}") from None
