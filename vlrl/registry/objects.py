"""Python objects where a config has names: functions and classes, each named so that any process finds it.

A config is written to YAML and read by other processes, so it can only hold names. An object is kept as a
file in the user's cache folder, named by its content: what stands in a module that can be imported is kept by
reference, what was written in a notebook or a script by value (cloudpickle). In this process its name gives
the object itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.registry.shipped import locate

SUFFIX = ".pkl:"
"""The form of a name: FOLDER/<digest>.pkl:<what it is called>."""

LISTS = frozenset({"rewards", "filters"})
NAMED = frozenset({*LISTS, "train", "eval"})
"""Keys whose sections have a name: an object alone stands for the section of that name."""

_given: dict[str, Any] = {}


def is_object(value: Any) -> bool:
    """Whether a value of a config's tree is a function, a class or another callable."""
    return callable(value)


def with_names(tree: Any, key: str = "") -> Any:
    """A config's tree with a name in place of every object; everything else stays as it is."""
    if isinstance(tree, Mapping):
        return {name: with_names(value, str(name)) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_section(item, key) if is_object(item) else with_names(item) for item in tree]
    if is_object(tree):
        section = _section(tree, key)
        return [section] if key in LISTS else section
    return tree


def _section(value: Any, key: str) -> Any:
    return {"name": name_of(value)} if key in NAMED else name_of(value)


def name_of(value: Any) -> str:
    """The name of an object, by which `find` gives it back in this and in every other process.

    Raises:
        ConfigError: for what cannot be sent to other processes, such as what holds an open file.
    """
    import cloudpickle

    label = re.sub(r"\W+", "_", str(getattr(value, "__name__", type(value).__name__))).strip("_") or "object"
    try:
        data = cloudpickle.dumps(value)
    except Exception as error:  # of any kind: whatever the object holds
        raise ConfigError(
            f"{label} cannot be sent to other processes ({type(error).__name__}: {error}); put it into a "
            "file and name it as ./file.py:attribute"
        ) from error
    path = folder() / f"{hashlib.sha256(data).hexdigest()[:20]}.pkl"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_bytes(data)
        os.replace(aside, path)
    name = f"{path}:{label}"
    _given[name] = value
    return name


def find(name: str) -> Any:
    """The object of a name that `name_of` gave.

    Raises:
        ConfigError: if its file is not there, or cannot be read here.
    """
    if name in _given:
        return _given[name]
    import cloudpickle

    path = Path(name.rpartition(":")[0])
    try:
        _given[name] = cloudpickle.loads(locate(path).file.read_bytes())
    except FileNotFoundError as error:
        raise ConfigError(
            f"{name} was given as a Python object, which is not kept here; give it again, or name it as "
            "./file.py:attribute"
        ) from error
    except Exception as error:  # a stranger's object may import anything
        raise ConfigError(
            f"{name} cannot be read again ({type(error).__name__}: {error}); see that what it imports is "
            "installed here, or give it again"
        ) from error
    return _given[name]


def label_of(name: str) -> str:
    """What an object is called, without the place of its file; any other name as it is."""
    return name.rpartition(SUFFIX)[2]


def folder() -> Path:
    """Where objects are kept: beside the other caches of the user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vlrl" / "objects"
