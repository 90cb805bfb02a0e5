"""docs/laws.md: every "law N" that a file cites is on the page, and every test that the page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
LAWS = re.split(r"^## (?=\d+\. )", PAGE, flags=re.MULTILINE)[1:]
FOLDERS = (
    "vlrl",
    "processors",
    "rewards",
    "envs",
    "tests",
    "docs",
    "examples",
    "benchmarks",
    "tools",
    "configs",
)
SUFFIXES = (".py", ".md", ".yaml", ".js", ".html")
CITED = re.compile(r"\blaws? +(\d+(?:(?:, | and | or )\d+)*)", re.IGNORECASE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def cited_laws(text: str) -> list[int]:
    """The numbers after "law" or "laws"."""
    return [int(number) for match in CITED.finditer(text) for number in re.findall(r"\d+", match[1])]


def files() -> Iterator[Path]:
    """Every source, test and page but this test, which cites laws that do not exist."""
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in SUFFIXES and file != Path(__file__):
                yield file


def number_of(law: str) -> int:
    """The number that a section's title begins with."""
    return int(law.split(".", 1)[0])


def test_there_are_ten_laws_in_order() -> None:
    assert [number_of(law) for law in LAWS] == list(range(1, 11))


def test_every_cited_law_is_on_the_page() -> None:
    found = [(file, number) for file in files() for number in cited_laws(file.read_text(encoding="utf-8"))]
    assert len(found) > 60
    assert [f"{file.relative_to(ROOT)}: law {n}" for file, n in found if not 1 <= n <= len(LAWS)] == []


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.splitlines()[0])
def test_a_law_says_why_and_names_tests_that_exist(law: str) -> None:
    assert "\nWhy: " in law
    tests = NAMED.findall(law)
    assert tests
    assert len(tests) == len(re.findall(r"^- ", law, re.MULTILINE)), "every line of the list names a test"
    for file, name in tests:
        assert (ROOT / file).is_file(), f"{file} does not exist"
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {name}"


def test_a_law_that_does_not_exist_is_found() -> None:
    assert cited_laws("as law 11 says, with laws 3 and 5; Laws 1, 2") == [11, 3, 5, 1, 2]
