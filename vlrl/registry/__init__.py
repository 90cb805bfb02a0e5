"""Plug-ins by name: built in, from a Python file, or from an installed package's entry points."""

from vlrl.registry.built_in import BUILT_IN
from vlrl.registry.lookup import available, ignored, resolve

__all__ = ["BUILT_IN", "available", "ignored", "resolve"]
