"""What the documents import from vlrl is there."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def imported(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each `from vlrl… import name` in the Python blocks of a page."""
    for block in BLOCK.findall(text):
        for node in ast.walk(ast.parse(textwrap.dedent(block))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vlrl":
                yield from ((node.module or "", alias.name) for alias in node.names)


def exists(module: str, name: str) -> bool:
    """True if the module has the name, as an attribute or as a module below it."""
    try:
        if hasattr(import_module(module), name):
            return True
        import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_imports_exists(page: Path) -> None:
    missing = [pair for pair in imported(page.read_text(encoding="utf-8")) if not exists(*pair)]
    assert not missing, missing


def test_this_test_sees_what_is_missing() -> None:
    found = list(imported("```python\nfrom vlrl.seeds import derive_seed, gone\nimport os\n```\n"))
    assert [exists(*pair) for pair in found] == [True, False]
    assert not exists("vlrl.nowhere", "x")
