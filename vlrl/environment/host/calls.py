"""One call of an environment: performed here and now, whatever it does but hang or crash.

An outcome is the checked value, the failure or wrong setting that it ended in, or a coroutine that gives one
of these, if the method is async.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from vlrl.environment.host.answers import checked
from vlrl.environment.host.failure import EnvFailure
from vlrl.errors import ConfigError
from vlrl.foreign.failure import failure_of

Outcome: TypeAlias = Any
"""A value, or the EnvFailure or ConfigError in its place."""
METHODS = ("reset", "step", "close")


def is_async(factory: Any) -> bool:
    """True of a class with async methods: it belongs into an event loop, its constructor too."""
    return inspect.isclass(factory) and any(
        inspect.iscoroutinefunction(getattr(factory, method, None)) for method in METHODS
    )


def perform(
    env: Any, method: str, arguments: tuple[Any, ...], *, copies: bool = True
) -> Outcome | Coroutine[Any, Any, Outcome]:
    """Call one of its methods; the arguments are copied, as every episode must find them the same.

    A snapshot is returned, and given to `restore`, as bytes. For `copies` see `checked`.
    """

    def check(returned: Any) -> Any:
        return checked(method, returned, for_agents=hasattr(env, "agents"), copies=copies)

    def call() -> Any:
        given = (pickle.loads(arguments[0]),) if method == "restore" else copy.deepcopy(arguments)
        returned = getattr(env, method)(*given)
        return _later(check, returned) if inspect.isawaitable(returned) else check(returned)

    return attempt(call)


def attempt(function: Callable[[], Any]) -> Outcome:
    """What a stranger's code returns, or what is to be said of what it raises."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        return _said(error)


async def _later(check: Callable[[Any], Any], awaitable: Awaitable[Any]) -> Outcome:
    try:
        return check(await awaitable)
    except (Exception, SystemExit) as error:
        return _said(error)


def _said(error: BaseException) -> EnvFailure | ConfigError:
    if isinstance(error, EnvFailure):
        return error
    if isinstance(error, ConfigError):
        return ConfigError(str(error))  # without what only this process knows
    found = failure_of(error)
    return EnvFailure("raised", found.reason, found.trace)


def result(outcome: Outcome) -> Any:
    """The value.

    Raises:
        EnvFailure, ConfigError: in its place.
    """
    if isinstance(outcome, EnvFailure | ConfigError):
        raise outcome
    return outcome


def overdue(limit_s: float) -> EnvFailure:
    """The error of a call that was given up."""
    return EnvFailure("hung", f"took longer than {limit_s:g} s")


def options_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that the constructor may keep and change."""
    return copy.deepcopy(dict(options))
