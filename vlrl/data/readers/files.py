"""The files that a name stands for: itself, a pattern with * and ?, or one with {a,b} or {000..041}."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from vlrl.errors import DatasetMissing

BRACES = re.compile(r"\{([^{}]*)\}")
RANGE = re.compile(r"(\d+)\.\.(\d+)")


def expand(name: str) -> list[Path]:
    """Files in a fixed order.

    Raises:
        DataError: naming what does not exist.
    """
    found: list[Path] = []
    for pattern in _braces(name):
        if Path(pattern).is_file():  # first, as a name may hold the pattern's characters itself
            found.append(Path(pattern))
            continue
        matches = sorted(Path(match) for match in glob.glob(pattern, recursive=True))
        if not matches:
            raise DatasetMissing(f"dataset file {pattern} does not exist (looked in {Path.cwd()})")
        found += [path for path in matches if path.is_file()]
    return found


def _braces(pattern: str) -> list[str]:
    match = BRACES.search(pattern)
    if match is None:
        return [pattern]
    inside = match[1]
    if bounds := RANGE.fullmatch(inside):
        first, last = bounds.groups()
        choices = [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    else:
        choices = inside.split(",")
    return [
        whole
        for choice in choices
        for whole in _braces(pattern[: match.start()] + choice + pattern[match.end() :])
    ]
