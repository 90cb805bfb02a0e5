"""Folders of the config as absolute paths: a worker's working folder is its node's, not the driver's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator

from vlrl.config.section import Name, Section

S = TypeVar("S", bound=Section)


def absolute(path: Path) -> Path:
    """A path from the root, `~` expanded; links and `..` are left as they are written."""
    return path.expanduser().absolute()


def _absolute_file(name: str) -> str:
    """./file.py:function as seen from any process: ranks may have another working folder."""
    path, is_file, attribute = name.rpartition(".py:")
    return f"{absolute(Path(path + '.py'))}:{attribute}" if is_file else name


FunctionName: TypeAlias = Annotated[Name, AfterValidator(_absolute_file)]


def model_place(path: str) -> str:
    """What model.path names, for every process the same: a hub name and a URL as they are, a folder absolute.

    A name of the form OWNER/NAME is a folder only where there is one, as for transformers and vLLM.
    """
    is_folder = looks_like_a_folder(path) or ("://" not in path and Path(path).is_dir())
    return str(absolute(Path(path))) if is_folder else path


def looks_like_a_folder(path: str) -> bool:
    """A hub name is OWNER/NAME, a URL has ://; anything with another shape is meant as a folder."""
    return "://" not in path and (
        path.startswith((".", "/", "~")) or path.count("/") != 1 or Path(path).parts[0] in ("runs", "models")
    )


def with_absolute_paths(section: S) -> S:
    """A section, and those in it, with every option that is a path made absolute."""
    changed: dict[str, object] = {}
    for name, value in section:
        if isinstance(value, Path) and value != absolute(value):
            changed[name] = absolute(value)
        if isinstance(value, Section) and (inner := with_absolute_paths(value)) is not value:
            changed[name] = inner
    return section.model_copy(update=changed) if changed else section
