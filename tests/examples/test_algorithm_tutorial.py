"""docs/algorithm_tutorial.md does what it says: files are written, commands run, their output compared."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from documents import blocks, follow

TUTORIAL = (Path(__file__).parents[2] / "docs" / "algorithm_tutorial.md").read_text(encoding="utf-8")


@pytest.fixture
def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "COLUMNS": "250"}


def test_every_block_is_run_and_a_loss_is_short() -> None:
    assert TUTORIAL.count("\n```") == 2 * len(blocks(TUTORIAL))
    assert all(text.count("\n") < 30 for language, _, text in blocks(TUTORIAL) if language == "python")


@pytest.mark.slow
def test_the_tutorial_but_for_training(tmp_path: Path, environment: dict[str, str]) -> None:
    assert follow(TUTORIAL, tmp_path, environment, slow=False) >= 6


@pytest.mark.slow
def test_the_whole_tutorial(tmp_path: Path, environment: dict[str, str]) -> None:
    assert follow(TUTORIAL, tmp_path, environment, slow=True) >= 8
