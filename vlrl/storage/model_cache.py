"""A model at a URL, fetched once into the user's cache folder of each host."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vlrl.errors import ConfigError, ResourceError
from vlrl.storage.remote import RemoteFile, RemoteFolder

CONFIG_FILE = "config.json"


def local_model(path: str, *, only: Collection[str] = ()) -> str:
    """Where transformers and vLLM can read a model: a hub name or folder as it is, for a URL its cached copy.

    The first process on a host fetches it, others wait. A changed file at the URL makes another copy.

    Args:
        path: as in model.path.
        only: names of the files that are wanted; all by default.

    Raises:
        ConfigError: if there is no model at the URL, or its protocol needs a package.
        ResourceError: if it cannot be reached, or the cache cannot be written.
    """
    if "://" not in path:
        return path
    remote = RemoteFolder(path, "model.path")
    files = remote.files()
    if CONFIG_FILE not in files:
        raise ConfigError(f"model.path={path}: no {CONFIG_FILE} there; give a folder in Hugging Face format")
    folder, wanted = models_folder() / _key(path, files), files
    if only and not folder.is_dir():
        wanted = {name: file for name, file in files.items() if name in only}
        folder = models_folder() / _key(path, wanted)
    try:
        with _locked(folder.with_suffix(".lock")):
            if not folder.is_dir():
                _fetch(remote, wanted, folder)
    except OSError as error:
        raise ResourceError(
            f"model.path={path}: host {socket.gethostname()} could not copy it to {folder} "
            f"({error.strerror}); free some space, or set XDG_CACHE_HOME to a folder on another disk"
        ) from error
    return str(folder)


def models_folder() -> Path:
    """Where copies are kept: vlrl/models in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vlrl" / "models"


def _key(path: str, files: Mapping[str, RemoteFile]) -> str:
    facts = [path, *([name, file.size, file.tag] for name, file in sorted(files.items()))]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _fetch(remote: RemoteFolder, files: Mapping[str, RemoteFile], folder: Path) -> None:
    """Download into a folder beside `folder`, which takes its place when all is there."""
    aside = folder.with_suffix(".partial")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        for name, file in files.items():
            remote.download(name, aside / name)
            if (found := (aside / name).stat().st_size) != file.size:
                raise ResourceError(
                    f"{remote.url}/{name}: {found} of {file.size} bytes came to host {socket.gethostname()}; "
                    "try again"
                )
        os.replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
