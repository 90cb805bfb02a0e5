"""docs/options.md has every option, and is what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vlrl.cli.options_page import options_page
from vlrl.config import field_paths
from vlrl.option_names import ALIASES

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_page_is_fresh(vlrl: Any) -> None:
    result = vlrl("config", "schema", "--markdown")
    assert result.code == 0
    assert result.out == options_page() == PAGE.read_text(encoding="utf-8"), (
        "an option has changed: vlrl config schema --markdown > docs/options.md"
    )


def test_every_option_has_its_row() -> None:
    rows = set(re.findall(r"^\| `([a-z_.0-9]+)` \|", options_page(), re.MULTILINE))
    titles = set(re.findall(r"^## ([a-z_.]+)$", options_page(), re.MULTILINE))
    listed_once = re.compile(r"data\.(train|eval)\.rewards\.")  # as `rewards`
    missing = {key for key in field_paths() if not listed_once.match(key)} - rows - titles
    assert missing == set()


def test_rows_are_whole() -> None:
    """Four cells each, the meaning among them."""
    for line in options_page().splitlines():
        if (
            line.startswith("| `")
            and line.count("`") > 2
            and len(cells := re.split(r"(?<!\\)\|", line)[1:-1]) == 4
        ):
            assert all(cell.strip() for cell in cells), line


def test_other_projects_words_are_there() -> None:
    for there, here in ALIASES.items():
        assert f"| `{there}` | `{here}` |" in options_page()
