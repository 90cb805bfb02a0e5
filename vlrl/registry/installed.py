"""What installed packages register as plug-ins, and how their modules are imported."""

from __future__ import annotations

import functools
import importlib
import traceback
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from vlrl.errors import ConfigError


class Plugin(NamedTuple):
    """What an installed package registers: "module:attribute", and the package's name and version."""

    target: str
    package: str


@functools.cache
def installed(kind: str) -> dict[str, list[Plugin]]:
    """Name → those that register it, in the order of the packages' names.

    Asked once a kind: to ask hundreds of packages takes 10 ms, and every episode asks for its environment.
    """
    found: dict[str, set[Plugin]] = {}
    for point in entry_points(group=f"vlrl.{kind}"):
        package = f"package {point.dist.name} {point.dist.version}" if point.dist else "an unnamed package"
        found.setdefault(point.name, set()).add(Plugin(point.value, package))
    return {name: sorted(owners, key=lambda owner: owner.package) for name, owners in found.items()}


def import_plugin(module: str, what: str) -> Any:
    """Import a module of a package that is not ours.

    Args:
        module: its dotted name.
        what: wants it, for the message.

    Raises:
        ConfigError: saying what was raised, and at which line.
    """
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a stranger's code, whatever it raises
        raise ConfigError(f"{what} cannot be imported: {_origin(error)}") from error


def _origin(error: BaseException) -> str:
    """What importing a package raised, and where: the last line that is not of the import system."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: SyntaxError: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    last = frames[-1] if frames and frames[-1].filename != __file__ else None
    place = f" ({last.filename}, line {last.lineno})" if last else ""
    said = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
    return f"{said}{place}"
