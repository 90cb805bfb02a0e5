"""What a process has written to its standard output and error, where these are files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

MAX_BYTES = 256 * 1024
"""Read of a file at once; the rest comes with the next look."""
OWN = re.compile(r"^:(job_id|actor_name|task_name):")
"""Lines that Ray writes for itself."""


def output_files() -> tuple[str, ...]:
    """Files of this process' standard output and error; those that are none, such as a terminal, left out."""
    places = dict.fromkeys(os.readlink(f"/proc/self/fd/{number}") for number in (1, 2))
    return tuple(place for place in places if Path(place).is_file())


def read_on(read: Mapping[str, int]) -> dict[str, tuple[int, Sequence[str]]]:
    """The whole lines of files behind what has been read of each.

    Args:
        read: bytes by file.

    Returns:
        By file: bytes that have been read now, and the new lines.
    """
    found: dict[str, tuple[int, Sequence[str]]] = {}
    for name, start in read.items():
        try:
            with Path(name).open("rb") as file:
                file.seek(start)
                data = file.read(MAX_BYTES)
        except OSError:  # gone with the process' node or Ray's session
            continue
        whole = data if len(data) == MAX_BYTES and b"\n" not in data else data[: data.rfind(b"\n") + 1]
        if whole:
            lines = whole.decode("utf-8", errors="backslashreplace").splitlines()
            found[name] = start + len(whole), [line for line in lines if line.strip() and not OWN.match(line)]
    return found
