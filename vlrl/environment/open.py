"""Environments by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.errors import ConfigError
from vlrl.protocols import Env
from vlrl.registry import resolve


def open_env(name: str, options: Mapping[str, Any]) -> Env:
    """Make an environment.

    Args:
        name: registered, or ./file.py:Class.
        options: its constructor's arguments.

    Raises:
        ConfigError: for an unknown name or a wrong option.
    """
    factory = resolve("envs", name)
    try:
        env: Env = factory(**options)
    except TypeError as error:
        raise ConfigError(f"env {name!r} does not take the options {dict(options)}: {error}") from error
    return env
