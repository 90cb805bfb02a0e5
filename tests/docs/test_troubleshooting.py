"""The page of messages names such as vlrl prints: each heading is a part of a text in the sources."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MESSAGES = re.findall(
    r"^### `(.+)`$", (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE
)


@cache
def texts() -> list[str]:
    """Every text in the sources, what is filled in left out."""
    found = []
    for file in sorted((ROOT / "vlrl").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value for part in node.values if isinstance(part, ast.Constant))
                found.append("\0".join(str(part) for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_there_are_messages() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) > 20


@pytest.mark.parametrize("message", MESSAGES)
def test_the_sources_say_it(message: str) -> None:
    assert any(message in text for text in texts())
