"""docs/rewards_tutorial.md does what it says: files are written, commands run, their output compared."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from documents import blocks, commands, follow

TUTORIAL = (Path(__file__).parents[2] / "docs" / "rewards_tutorial.md").read_text(encoding="utf-8")


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


def test_every_block_is_run() -> None:
    assert TUTORIAL.count("\n```") == 2 * len(blocks(TUTORIAL))
    assert {language for language, _, _ in blocks(TUTORIAL)} == {"python", "console", "yaml", "toml"}
    assert all(list(commands(text)) for language, _, text in blocks(TUTORIAL) if language == "console")


@pytest.mark.slow
def test_the_tutorial_but_for_training(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert follow(TUTORIAL, folder, environment, slow=False) >= 9


@pytest.mark.slow
def test_the_whole_tutorial(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert follow(TUTORIAL, folder, environment, slow=True) >= 14
