"""What installed distributions need."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(*names: str) -> set[str]:
    """Distributions with all that they need in turn, as far as they are installed; normalised names."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        try:
            wanted = [Requirement(line) for line in requires(name) or []]
        except PackageNotFoundError:  # of a GPU machine, such as triton
            continue
        found.add(name)
        waiting += [r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found
