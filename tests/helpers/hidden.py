"""Programs that run as if some packages were not installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

SITE = """\
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HIDDEN = frozenset({hidden!r})


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
sys.path.remove({folder!r})  # Python imports one such file: the next one is run from here
for entry in sys.path:
    if (Path(entry) / "sitecustomize.py").is_file():
        runpy.run_path(str(Path(entry) / "sitecustomize.py"))
        break
sys.path.insert(0, {folder!r})
"""


def environment_without(folder: Path, packages: Iterable[str]) -> dict[str, str]:
    """This process's environment in which Python does not find some packages, in child processes neither.

    Args:
        folder: an empty one, which comes first on PYTHONPATH.
        packages: top-level names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    code = SITE.format(hidden=sorted(packages), folder=str(folder))
    (folder / "sitecustomize.py").write_text(code)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
