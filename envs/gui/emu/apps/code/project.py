"""A folder of programs: which files it has, what is wrong in them, where a text stands in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.apps.code.lint import Problem, problems

ENDINGS = (".py", ".txt", ".md", ".csv")
"""Endings of files that are shown as text."""
MOST_HITS = 200


class Match(NamedTuple):
    """Where a text stands: in a file, from a character of it on; `line` from 1 on, and what it says."""

    path: str
    start: int
    line: int
    said: str


def paths_in(root: str, reader: Reader) -> list[str]:
    """Files of a project that are texts, by their paths."""
    found = (path for path in reader.world.files if path.startswith(f"{root.rstrip('/')}/"))
    return sorted(path for path in found if isinstance(reader.read(path), str) and path.endswith(ENDINGS))


def text_of(path: str, changed: Mapping[str, str], reader: Reader) -> str:
    """What a file says, with changes that are not saved yet."""
    if path in changed:
        return changed[path]
    stored = reader.read(path)
    return stored if isinstance(stored, str) else ""


def all_problems(root: str, changed: Mapping[str, str], reader: Reader) -> list[tuple[str, Problem]]:
    """(path, problem) of every program of a project."""
    return [
        (path, problem)
        for path in paths_in(root, reader)
        if path.endswith(".py")
        for problem in problems(text_of(path, changed, reader))
    ]


def matches(root: str, query: str, changed: Mapping[str, str], reader: Reader) -> list[Match]:
    """Where a text stands in the files of a project, the first places."""
    found: list[Match] = []
    for path in paths_in(root, reader) if query.strip() else ():
        text = text_of(path, changed, reader)
        at = text.find(query)
        while at >= 0 and len(found) < MOST_HITS:
            first, last = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            said = text[first : len(text) if last < 0 else last].strip()
            found.append(Match(path, at, text.count("\n", 0, at) + 1, said))
            at = text.find(query, at + len(query))
    return found
