"""Documents that do what they say: their blocks are written to files and run, their output compared."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXIT_CODE = re.compile(r"# exit code (\d+)")


def blocks(text: str) -> list[tuple[str, str, str]]:
    """(language, file or mark, text) of every fenced block."""
    return [(m[1], m[2] or "", m[3]) for m in BLOCK.finditer(text)]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """(command, lines of its output that the reader is shown)."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.strip().splitlines()
        yield command, shown


def follow(text: str, folder: Path, environment: Mapping[str, str], *, slow: bool = False) -> int:
    """Do what a document says in a folder; the number of commands run.

    A block with a file's name is written there; a console block is run, unless it is marked slow.
    """
    count = 0
    for language, mark, block in blocks(text):
        if language != "console":
            assert mark, f"a block of {language} without a file name is not run"
            (folder / mark).write_text(block, encoding="utf-8")
        elif mark != "slow" or slow:
            for command, shown in commands(block):
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                output = " ".join((done.stdout + done.stderr).split())
                code = EXIT_CODE.search(command)
                assert done.returncode == (int(code[1]) if code else 0), f"{command}\n{output}"
                for line in shown:
                    assert " ".join(line.split()) in output, f"{command}\nlacks: {line}\n{output}"
                count += 1
    return count
