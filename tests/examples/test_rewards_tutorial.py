"""docs/rewards_tutorial.md does what it says: files are written, commands run, their output compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXIT_CODE = re.compile(r"# exit code (\d+)")


def blocks() -> list[tuple[str, str, str]]:
    """(language, file or mark, text) of every fenced block."""
    text = (ROOT / "docs" / "rewards_tutorial.md").read_text(encoding="utf-8")
    return [(m[1], m[2] or "", m[3]) for m in BLOCK.finditer(text)]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """(command, lines of its output that the reader is shown)."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.strip().splitlines()
        yield command, shown


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A shell where `pip install` goes into a folder of this test, offline."""
    tools, installed = tmp_path / "bin", tmp_path / "installed"
    tools.mkdir()
    pip = tools / "pip"
    options = f"--quiet --no-deps --no-build-isolation --no-index --target {installed}"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@" {options}\n')
    pip.chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    python_path = os.pathsep.join([str(installed), os.environ["PYTHONPATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": python_path, "COLUMNS": "250"}


def follow(folder: Path, environment: dict[str, str], *, slow: bool) -> int:
    """Do what the tutorial says in a folder; the number of commands run."""
    count = 0
    for language, mark, text in blocks():
        if language != "console":
            assert mark, f"a block of {language} without a file name is not run"
            (folder / mark).write_text(text, encoding="utf-8")
        elif mark != "slow" or slow:
            for command, shown in commands(text):
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


def test_every_block_is_run() -> None:
    text = (ROOT / "docs" / "rewards_tutorial.md").read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(blocks())
    assert {language for language, _, _ in blocks()} == {"python", "console", "yaml", "toml"}
    assert all(list(commands(text)) for language, _, text in blocks() if language == "console")


def test_the_tutorial_but_for_training(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert follow(folder, environment, slow=False) >= 9


@pytest.mark.slow
def test_the_whole_tutorial(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert follow(folder, environment, slow=True) >= 14
