"""A function found by name with the options of a config, checked against its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from vlrl.errors import ConfigError
from vlrl.registry.lookup import resolve, singular
from vlrl.registry.signature import named, require_options, typed_options


class Bound(NamedTuple):
    """A function and what it takes beside its positional arguments.

    Attributes:
        function: as its author wrote it.
        options: passed by name.
        wanted: what it asks for by name of all that it could be given.
        read: the shared options that it reads.
    """

    function: Callable[..., Any]
    options: Mapping[str, Any]
    wanted: frozenset[str]
    read: frozenset[str]

    def __call__(self, *given: Any, **context: Any) -> Any:
        """Call it; of the context it gets what it asks for."""
        return self.function(*given, **{n: context[n] for n in self.wanted}, **self.options)


def bind(
    kind: str,
    name: str,
    options: Mapping[str, Any],
    *,
    given: Sequence[str],
    shared: Mapping[str, Any],
    context: Collection[str] = (),
) -> Bound:
    """Find a function and see what it takes.

    Args:
        kind: of plug-in.
        name: a registered name, ./file.py:function, or package.module:function.
        options: passed to it by name.
        given: names of what it is called with by position; its own parameters may be called otherwise.
        shared: options of the section around it, of which it gets those that it names.
        context: what it may ask for by name.

    Raises:
        ConfigError: for an unknown name, a file that fails, what is no such function, an option that it would
            never see, one of another type than it says, and one that it cannot do without.
    """
    function, what = resolve(kind, name), f"{singular(kind)} {name!r}"
    if not callable(function):
        raise ConfigError(f"{what} is a {type(function).__name__}, not a function")
    parameters = list(inspect.signature(function).parameters.values())
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(by_position) < len(given):
        raise ConfigError(f"{what} must take {', '.join(given)} first, in this order")
    rest = [p for p in parameters if p not in by_position[: len(given)]]
    for key in sorted(options.keys() & shared.keys()):
        raise ConfigError(f"{what}: {key!r} is a key beside this one; move it out of the options")
    require_options(what, options, [p for p in rest if p.name not in context and p.name not in shared])
    names, _ = named(rest)
    read, wanted = names & shared.keys(), names & set(context)
    for p in rest:
        is_rest = p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        if p.default is p.empty and not is_rest and p.name not in {*options, *read, *wanted}:
            raise ConfigError(f"{what} needs the option {p.name!r}")
    given_options = typed_options(what, function, options)
    return Bound(function, {**{key: shared[key] for key in read}, **given_options}, wanted, read)
