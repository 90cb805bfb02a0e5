"""The pages of docs/decisions: what was chosen, when and why, and all of it in the table of contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
AREAS = sorted(file for file in FOLDER.glob("*.md") if file.name != "README.md")
CONTENTS = (FOLDER / "README.md").read_text(encoding="utf-8")


def sections(page: Path) -> list[tuple[str, str]]:
    """(title, text) of each decision."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("page", AREAS, ids=lambda page: page.stem)
def test_a_decision_has_a_date_a_choice_and_a_reason(page: Path) -> None:
    for title, text in sections(page):
        assert re.match(r"\n\n\d{4}-\d\d-\d\d\b", text), f"{title}: no date"
        assert text.count("**Choice.**") == 1, title
        assert len(re.findall(r"\*\*Reason(?: and measured)?\.\*\*", text)) == 1, title
        assert text.count("**Measured.**") <= 1, title


@pytest.mark.parametrize("page", AREAS, ids=lambda page: page.stem)
def test_every_decision_is_in_the_table_of_contents(page: Path) -> None:
    listed = re.findall(rf"^- \[(.+)\]\({page.name}#\S+\) \((\S+)\)$", CONTENTS, re.MULTILINE)
    assert listed == [(title, text.split(maxsplit=1)[0]) for title, text in sections(page)]


@pytest.mark.parametrize("page", [*AREAS, FOLDER / "README.md"], ids=lambda page: page.stem)
def test_no_reference_is_to_an_issue_by_number(page: Path) -> None:
    assert re.findall(r"\bissues? #?\d+", page.read_text(encoding="utf-8"), re.IGNORECASE) == []
