"""Packages that only an adapter needs."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from vlrl.errors import ConfigError


def load(module: str, adapter: str, install: str) -> ModuleType:
    """Import a package that vlrl does not bring.

    Args:
        module: its import name.
        adapter: who asks.
        install: what pip is to be given.

    Raises:
        ConfigError: if it, or something it needs, is not installed.
    """
    # pygame draws most of these packages' images: in memory, without a window, a sound card or a greeting.
    for name, value in (("VIDEODRIVER", "dummy"), ("AUDIODRIVER", "dummy")):
        os.environ.setdefault(f"SDL_{name}", value)
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"env {adapter}: {module}: {error}; try: pip install {install!r}") from error
