"""docs/traps.md names a test for every trap; each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "traps.md").read_text(encoding="utf-8")
TRAPS = re.findall(r"^(##+ .+?)$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)


def named_tests(text: str) -> list[tuple[str, str]]:
    """(file, function or "") of everything in code marks that looks like a test."""
    found = []
    for line in text.splitlines():
        file = ""
        for name in re.findall(r"`([^`]+)`", line):
            path, _, function = name.partition("::")
            if (path.startswith("tests/") and path.endswith(".py")) or name.startswith("::"):
                file = path or file  # `::name` is in the file named before
                found.append((file, function))
    return found


@pytest.mark.parametrize(("title", "text"), TRAPS, ids=[title for title, _ in TRAPS])
def test_a_trap_has_a_symptom_and_tests_that_exist(title: str, text: str) -> None:
    if title.startswith("## K. "):
        assert not text.strip()  # the traps are the sections below it
        return
    assert "**Symptom.**" in text
    found = named_tests(text)
    assert found
    for file, function in found:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {function}(" in source or not function, f"{file} has no {function}"


def test_the_page_names_many_tests() -> None:
    assert len(named_tests(PAGE)) > 60


def test_every_letter_of_the_field_has_a_section() -> None:
    assert "".join(title[3] for title, _ in TRAPS if re.match(r"## [A-Z]\. ", title)) == "ABCDEFGHIJK"
