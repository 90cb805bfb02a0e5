"""The trash: where files go that are deleted, and where they came from."""

from __future__ import annotations

from collections.abc import Iterable

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import Reader, System

TRASH = "/Trash"


def throw_away(paths: Iterable[str], system: System) -> None:
    """Move files into the trash; those that are already in there are deleted for good."""
    origins: dict[str, str] = dict(system.data_of("files") or ())
    for path in paths:
        if path.startswith(TRASH + "/"):
            system.delete(path)
            origins.pop(path, None)
        else:
            to = free(files.join(TRASH, files.base(path)), system)
            if not system.exists(TRASH):
                system.make_folder(TRASH)
            system.move(path, to)
            origins[to] = path
    system.keep_for("files", tuple(origins.items()))


def free(path: str, reader: Reader) -> str:
    """The path, or with a number if there is something already."""
    start, dot, ending = files.base(path).rpartition(".")
    name, number = (start, 2) if dot else (ending, 2)
    unused = path
    while reader.exists(unused):
        unused = files.join(files.parent(path), f"{name} ({number}){dot}{ending if dot else ''}")
        number += 1
    return unused
