"""Plug-ins by name: built in, from a Python file, or from an installed package's entry points."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import re
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from vlrl.errors import ConfigError
from vlrl.registry.built_in import BUILT_IN, REPLACED
from vlrl.registry.installed import Plugin, import_plugin, installed
from vlrl.registry.objects import SUFFIX, find
from vlrl.registry.shipped import locate


class Ignored(NamedTuple):
    """An installed plug-in that its name does not lead to, and why."""

    name: str
    plugin: Plugin
    reason: str


def resolve(kind: str, name: str) -> Any:
    """Find a plug-in.

    Args:
        kind: one of BUILT_IN's.
        name: a registered name, "package.module:attribute", "path/to/file.py:attribute", or what
            `vlrl.registry.objects` made of an object.

    Raises:
        ConfigError: naming the nearest name, or what is wrong with the file or the package.
    """
    if ".py:" in name:
        path, attribute = name.rsplit(":", 1)
        return _attribute(_load_file(Path(path), kind), attribute, name)
    if SUFFIX in name:
        return find(name)
    table = available(kind)
    if name not in table and MODULE.fullmatch(name):
        module, _, attribute = name.partition(":")
        return _attribute(import_plugin(module, f"plug-in {name!r}"), attribute, name)
    if name not in table and (instead := REPLACED.get(kind, {}).get(name)):
        raise ConfigError(f"no {singular(kind)} is named {name!r}; it is now {instead}")
    if name not in table:
        near = difflib.get_close_matches(name, table, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(table)) or 'none'}."
        raise ConfigError(
            f"no {singular(kind)} is named {name!r}; {hint} A file is given as ./file.py:attribute, "
            "a module as package.module:attribute"
        )
    what = f"plug-in {name!r} ({table[name]})"
    if name not in BUILT_IN[kind]:
        owners = installed(kind)[name]
        what = f"plug-in {name!r} ({table[name]}) of {owners[0].package}"
        if len(owners) > 1:
            each = " and ".join(f"{owner.package} ({owner.target})" for owner in owners)
            raise ConfigError(f"{name!r} is registered by {each}: name the module:attribute that you mean")
    module, _, attribute = table[name].partition(":")
    return _attribute(import_plugin(module, what), attribute, name)


def singular(kind: str) -> str:
    """What one plug-in of a kind is called in messages."""
    return "loss" if kind == "losses" else kind.removesuffix("s")


def available(kind: str) -> dict[str, str]:
    """Every registered name of a kind with its "module:attribute"; built-ins win over entry points.

    Raises:
        ConfigError: for an unknown kind.
    """
    if kind not in BUILT_IN:
        raise ConfigError(f"no plug-ins of kind {kind!r}; kinds are {', '.join(BUILT_IN)}")
    return {**{name: owners[0].target for name, owners in installed(kind).items()}, **BUILT_IN[kind]}


def ignored(kind: str) -> list[Ignored]:
    """Installed plug-ins that are named like a built-in, or like another package's."""
    found = []
    for name, owners in sorted(installed(kind).items()):
        for owner in owners if name in BUILT_IN[kind] else owners[1:]:
            rival = "a built-in" if name in BUILT_IN[kind] else owners[0].package
            reason = f"{owner.package} registers {name!r} too, and is not heard: {rival} has the name"
            found.append(Ignored(name, owner, f"{reason}. Use it as {owner.target}"))
    return found


MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


_LOADING = threading.RLock()
"""Environments are made in threads: none may find a module that another is still running."""


def _load_file(path: Path, kind: str) -> Any:
    with _LOADING:
        return _loaded(path, kind)


def _loaded(path: Path, kind: str) -> Any:
    file, origin = locate(path)
    if not file.is_file():
        raise ConfigError(f"plug-in file {path} does not exist (looked in {Path.cwd()})")
    # A stable module name: loading twice must give the same classes, also in worker processes.
    digest = hashlib.sha256(str(origin).encode()).hexdigest()[:12]
    name = f"vlrl_plugin_{kind}_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"plug-in file {path} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a stranger's code: half a module must not stay behind
        del sys.modules[name]
        raise ConfigError(f"plug-in file {path}: {_blame(error, file)}") from error
    return module


def _blame(error: BaseException, path: Path) -> str:
    """What a plug-in file raised, and the last of its lines that took part."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: SyntaxError: {error.msg}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{type(error).__name__}: {error}"


def _attribute(module: Any, attribute: str, name: str) -> Any:
    if not hasattr(module, attribute):
        public = [a for a in dir(module) if not a.startswith("_")]
        near = difflib.get_close_matches(attribute, public, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"plug-in {name!r}: the module has no {attribute!r}{hint}")
    return getattr(module, attribute)
