"""Programs outside the package import what there is in it, those too that no fast test runs."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

FOLDERS = ("benchmarks", "tools", "deploy", "examples")


def missing(text: str) -> list[str]:
    """Names that `text` imports from vlrl, at its top or within a function, and that are not there."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and not node.level and str(node.module).split(".")[0] == "vlrl":
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                if not hasattr(module, alias.name):
                    try:
                        importlib.import_module(f"{node.module}.{alias.name}")
                    except ModuleNotFoundError:
                        found.append(f"{node.lineno}: {node.module} has no {alias.name}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_they_import_is_there(root: Path, folder: str) -> None:
    files = sorted((root / folder).rglob("*.py"))
    assert files
    problems = [
        f"{path.relative_to(root)}:{problem}" for path in files for problem in missing(path.read_text())
    ]
    assert not problems, "\n".join(problems)


def test_this_test_sees_names_that_are_gone() -> None:
    text = "def f():\n    from vlrl.types import Row, Gone\n    from vlrl import grpo, nothing\n"
    assert missing(text) == ["2: vlrl.types has no Gone", "3: vlrl has no nothing"]
