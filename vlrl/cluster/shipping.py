"""Code that the nodes of a cluster get from the driver: plug-ins' files, and vlrl itself from a checkout.

Ray's runtime environment carries it: copies of what is sent are put together in a folder, which Ray packs,
uploads and unpacks on each node, in front of what is installed there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pickletools
import shutil
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray._private.runtime_env.constants import RAY_JOB_CONFIG_JSON_ENV_VAR
from ray._private.runtime_env.packaging import GCS_STORAGE_MAX_SIZE

import vlrl
from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.registry.lookup import MODULE
from vlrl.registry.objects import SUFFIX
from vlrl.registry.shipped import PACKAGE, write_manifest

MAX_FILES = 20_000
"""In one package: who names more has named a folder with more than code in it."""
NUM_NAMED = 5
"""Largest files that a refusal names."""

SKIPPED = frozenset({"__pycache__", "node_modules", "wandb"})
"""Folders that hold no code of a user's; neither do hidden ones, and virtual environments."""

VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_ENDPOINT", "NCCL_DEBUG")
"""What the driver sets of these holds on all nodes. Tokens and keys are not among them: Ray shows a job's
variables to everybody on the cluster, and writes them into files."""

OVERRIDE = "RAY_OVERRIDE_JOB_RUNTIME_ENV"


@contextmanager
def runtime_env(config: Config) -> Iterator[dict[str, Any]]:
    """Ray's runtime environment for a run on an existing cluster, while Ray is started with it.

    What `ray job submit` asked for stays: its modules come after these, its variables go before.

    Raises:
        ConfigError: if Ray cannot carry the code.
    """
    given = json.loads(os.environ.get(RAY_JOB_CONFIG_JSON_ENV_VAR, "{}")).get("runtime_env") or {}
    variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    asked: dict[str, Any] = {"env_vars": variables | given.get("env_vars", {})}
    with tempfile.TemporaryDirectory(prefix="vlrl_") as folder:
        if config.ray.ship_code:
            modules = [str(module) for module in _modules(config, Path(folder))]
            asked["py_modules"] = [*modules, *given.get("py_modules", [])]
        before = os.environ.get(OVERRIDE)
        os.environ[OVERRIDE] = "1"  # both have been joined here
        try:
            yield asked
        finally:
            if before is None:
                del os.environ[OVERRIDE]
            else:
                os.environ[OVERRIDE] = before


def _modules(config: Config, folder: Path) -> list[Path]:
    """Copies in a folder of all that is sent; each is a module or a package on the nodes."""
    names = list(_strings(config.model_dump()))
    named = {Path(name.rpartition(":")[0]).absolute() for name in names if ".py:" in name or SUFFIX in name}
    files = {file for file in named if file.is_file()}
    modules = set(_local_modules(names, files))
    skipped = _data_of(names, {origin.parent for origin in (*files, *modules)})
    sent = [_copy_files(files, folder / PACKAGE, skipped)] if files else []
    sent += [_copy(origin, folder / origin.name, skipped) for origin in sorted(modules)]
    package = Path(vlrl.__file__).parent
    if not _is_installed(package):
        sent.append(_copy(package, folder / package.name, frozenset()))
    return sent


def _copy_files(files: set[Path], target: Path, skipped: frozenset[Path]) -> Path:
    """Plug-ins' files with all that is in their folders, and the files of objects, as a package."""
    folders = {parent: f"folder{n}" for n, parent in enumerate(sorted({file.parent for file in files}))}
    for parent, name in folders.items():
        (target / name).mkdir(parents=True)
        if any(file.parent == parent and file.suffix == ".py" for file in files):
            _copy(parent, target / name, skipped)
    for file in files:  # of an object's folder nothing else: it holds those of other runs too
        shutil.copyfile(file, target / folders[file.parent] / file.name)
    write_manifest(target, {file: f"{folders[file.parent]}/{file.name}" for file in files})
    return target


def _copy(origin: Path, target: Path, skipped: frozenset[Path]) -> Path:
    """A copy of a module, or of a folder with what may be code or belong to it.

    Raises:
        ConfigError: if Ray does not take so much.
    """
    if origin.is_file():
        return Path(shutil.copyfile(origin, target))
    sizes: dict[Path, int] = {}
    total = 0
    for file in _files(origin, skipped):
        sizes[file] = file.stat().st_size
        total += sizes[file]
        if total >= GCS_STORAGE_MAX_SIZE or len(sizes) > MAX_FILES:
            raise ConfigError(_too_much(origin, sizes))
    for file in sizes:
        copy = target / file.relative_to(origin)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return target


def _files(folder: Path, skipped: frozenset[Path]) -> Iterator[Path]:
    """Files under a folder, links followed, without those that hold no code."""
    seen = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(place))
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith(".")
            and name not in SKIPPED
            and not name.endswith(".egg-info")
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
            and Path(place, name).resolve() not in skipped
            and os.path.realpath(os.path.join(place, name)) not in seen
        ]
        for name in sorted(files):
            file = Path(place, name)
            if not name.startswith(".") and file.is_file() and file.resolve() not in skipped:
                yield file


def _too_much(folder: Path, sizes: Mapping[Path, int]) -> str:
    largest = sorted(sizes, key=lambda file: (-sizes[file], file))[:NUM_NAMED]
    shown = ", ".join(f"{file.relative_to(folder)} ({sizes[file] / 2**20:.1f} MiB)" for file in largest)
    return (
        f"a plug-in in {folder} cannot be sent to the cluster's nodes: its folder has over {MAX_FILES} "
        f"files or {GCS_STORAGE_MAX_SIZE / 2**20:.0f} MiB, more than Ray carries; the largest seen are "
        f"{shown}. Move the plug-in to a folder without data, or set ray.ship_code=false if all nodes have "
        "that folder"
    )


def _strings(tree: Any) -> Iterator[str]:
    """All strings and paths in a config's tree."""
    if isinstance(tree, str | Path):
        yield str(tree)
    elif isinstance(tree, Mapping):
        for value in tree.values():
            yield from _strings(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _strings(value)


def _data_of(names: list[str], folders: set[Path]) -> frozenset[Path]:
    """What a config names that is no code: files of data, the run's folder, the model.

    The folder of such a file belongs to it, as images lie beside rows, unless plug-ins are in there.
    """
    found = set()
    for name in names:
        path = Path(name).absolute()
        if ".py:" in name or SUFFIX in name or not (os.sep in name or path.suffix):
            continue
        found |= {place.resolve() for place in (path, path.parent) if os.path.exists(place)}
    with_code = {folder.resolve() for folder in folders}
    with_code |= {parent for folder in with_code for parent in folder.parents}
    return frozenset(found - with_code)


def _local_modules(names: list[str], files: set[Path]) -> Iterator[Path]:
    """Modules that plug-ins come from and that nobody has installed: files, and folders of packages."""
    wanted = {name.partition(":")[0].partition(".")[0] for name in names if MODULE.fullmatch(name)}
    for file in files:
        if file.suffix != ".py":  # an object that is kept by reference, or refers to others
            strings = (arg for _, arg, _ in pickletools.genops(file.read_bytes()) if isinstance(arg, str))
            wanted |= {text.partition(" ")[0].partition(".")[0] for text in strings} & sys.modules.keys()
    for name in wanted - {"vlrl", "__main__"}:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):  # a module without a spec
            continue
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            continue  # built in
        origin = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
        if not _is_installed(origin):
            yield origin


def _is_installed(path: Path) -> bool:
    """Whether a package or module belongs to Python or to what pip has installed."""
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.add(site.getusersitepackages())
    return any(path.is_relative_to(folder) for folder in folders)
