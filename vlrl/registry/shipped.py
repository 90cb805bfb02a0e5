"""Files of plug-ins that the driver has sent to the other nodes of a cluster, and how they are found there.

They arrive as a package named PACKAGE on the import path: copies of files, and a manifest that says which
file of the driver each one is. The driver has no such package and reads the files themselves.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = "vlrl_shipped"
MANIFEST = "manifest.json"


class Located(NamedTuple):
    """A plug-in's file in this process.

    Attributes:
        file: what is read here.
        origin: the driver's file, without links, which names the module: the same in all processes.
    """

    file: Path
    origin: Path


class _Shipment(NamedTuple):
    root: Path
    folder: str
    files: Mapping[str, tuple[str, str]]


def locate(path: Path) -> Located:
    """Find a file that a config names; one that was not sent is its own origin, and may be missing."""
    shipment = _shipment()
    if shipment is None or (found := shipment.files.get(_key(path, shipment.folder))) is None:
        return Located(path, path.resolve())
    copy, origin = found
    return Located(shipment.root / copy, Path(origin))


def write_manifest(root: Path, copies: Mapping[Path, str]) -> None:
    """Make a folder the package of its copies.

    Args:
        root: the folder.
        copies: for each file as the config names it the place of its copy in the folder.
    """
    folder = os.getcwd()
    files = {_key(path, folder): (copy, str(path.resolve())) for path, copy in copies.items()}
    (root / "__init__.py").touch()
    (root / MANIFEST).write_text(json.dumps({"folder": folder, "files": files}), encoding="utf-8")


@functools.cache
def _shipment() -> _Shipment | None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    manifest = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    return _Shipment(root, manifest["folder"], {key: tuple(of) for key, of in manifest["files"].items()})


def _key(path: Path, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, path))
