"""docs/traps.md names a test for every trap; each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent


def named_tests(table: str) -> list[tuple[str, str]]:
    """(file under tests/, function or "") of everything in code marks that looks like a test."""
    found = []
    for row in table.splitlines():
        file = ""
        for name in re.findall(r"`([^`]+)`", row):
            path, _, function = name.partition("::")
            if path.endswith(".py") or "::" in name:
                file = path or file  # `::name` is in the file named before
                found.append((file, function))
    return found


def test_every_test_in_the_table_of_traps_exists(root: Path) -> None:
    found = named_tests((root / "docs" / "traps.md").read_text())
    assert len(found) > 40
    for file, function in found:
        text = (TESTS / file).read_text()
        assert f"def {function}(" in text or not function, f"{file} has no {function}"


def test_every_letter_of_the_field_has_a_row(root: Path) -> None:
    rows = (root / "docs" / "traps.md").read_text().splitlines()
    letters = {row[2] for row in rows if re.match(r"\| [A-K]['0-9]?\d?\. ", row)}
    assert letters == set("ABCDEFGHIJK")
