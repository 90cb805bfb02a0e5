"""Programs that run as if some packages were not installed."""

from __future__ import annotations

import os
from pathlib import Path


def environment_without(folder: Path, *packages: str) -> dict[str, str]:
    """This process's environment in which importing the packages fails, in child processes too.

    Args:
        folder: an empty one, which comes first on PYTHONPATH.
        packages: top-level names.
    """
    for name in packages:
        package = folder / name
        package.mkdir(parents=True)
        message = f"No module named {name!r} (hidden by a test)"
        (package / "__init__.py").write_text(f"raise ModuleNotFoundError({message!r}, name={name!r})\n")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
