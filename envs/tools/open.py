"""Tools by name: built in, from a Python file, or from an installed package's entry points (vlrl.tools)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.envs.tools.declare import Tool, tool
from vlrl.errors import ConfigError
from vlrl.registry import resolve


def open_tools(names: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Make tools.

    Args:
        names: registered, or ./file.py:function.
        options: of those that are classes, their constructors' arguments, by the name in `names`.

    Raises:
        ConfigError: for an unknown name, two tools of one name, or a wrong option.
    """
    for name in options:
        if name not in names:
            raise ConfigError(f"options of tool {name!r}: it is not among the tools {list(names)}")
    made = tuple(_open(name, options.get(name, {})) for name in names)
    called = [made_tool.name for made_tool in made]
    for name in called:
        if called.count(name) > 1:
            raise ConfigError(f"two of the tools {list(names)} are called {name!r}; leave one out")
    return made


def _open(name: str, options: Mapping[str, Any]) -> Tool:
    found = resolve("tools", name)
    if inspect.isclass(found):
        try:
            found = found(**options)
        except TypeError as error:
            raise ConfigError(f"tool {name!r} does not take the options {dict(options)}: {error}") from error
    elif options:
        raise ConfigError(f"tool {name!r} is a function and takes no options, not {dict(options)}")
    if not callable(found):
        raise ConfigError(f"tool {name!r} is not a function and no class: {found!r:.60}")
    return tool(found)
