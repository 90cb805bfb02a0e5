"""Import desktop_env with the packages that are installed; a stand-in takes the place of every other one.

Its files import at their top what a single evaluator needs: one of the forty of docs.py needs easyocr, and
with it torch. A stand-in can be named by the code around it, not called; what cannot do without it is named
before anything is played (`reach`).
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PACKAGE = "desktop_env"
DISTRIBUTIONS = {
    "PIL": "pillow",
    "acoustid": "pyacoustid",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "odf": "odfpy",
    "pptx": "python-pptx",
    "skimage": "scikit-image",
    "yaml": "PyYAML",
}
"""Import name → what pip installs, where they differ."""


class MissingPackage(Exception):
    """A stand-in was used.

    Attributes:
        package: what pip installs.
        why: the import's error.
    """

    def __init__(self, package: str, why: str) -> None:
        super().__init__(f"{package} cannot be imported: {why}")
        self.package, self.why = package, why


class StandIn:
    """Takes the place of a module that cannot be imported, and of all that is in it."""

    __iter__ = None  # by __getitem__ it would have no end

    def __init__(self, package: str, why: str) -> None:
        """Take what pip installs, and the import's error."""
        self.missing = MissingPackage(package, why)

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: object) -> StandIn:
        return self

    def __call__(self, *arguments: object, **options: object) -> Any:
        """Raise `MissingPackage`."""
        raise self.missing


@contextmanager
def stand_ins() -> Iterator[None]:
    """While it lasts, an import by desktop_env's files that fails gives a `StandIn`."""
    imported = builtins.__import__

    def lenient(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        try:
            return imported(name, globals, locals, fromlist, level)
        except Exception as error:  # of a broken package, too
            if not str((globals or {}).get("__name__", "")).startswith(PACKAGE):
                raise
            if isinstance(error, MissingPackage):  # in another file of desktop_env
                return StandIn(error.package, error.why)
            module = PACKAGE if level else name.split(".")[0]
            return StandIn(DISTRIBUTIONS.get(module, module), str(error))

    builtins.__import__ = lenient
    try:
        yield
    finally:
        builtins.__import__ = imported


def load(module: str) -> Any:
    """A module of desktop_env; a `StandIn` if it cannot be imported for lack of a package."""
    with stand_ins():
        try:
            return importlib.import_module(f"{PACKAGE}.{module}")
        except MissingPackage as error:
            return StandIn(error.package, error.why)
