"""`make docs`: the documentation is a site that opens without network, and no link in it leads nowhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
LOADED_FROM_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc="(?:https?:)?//|<link[^>]*\shref="(?:https?:)?//"""
)
TOPS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")

Build = Callable[[Path, Path], "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds the pages of a folder as the Makefile does."""

    def run(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
        [command] = re.findall(r"sphinx-build (.*) -d \S+ -c docs \. \S+$", MAKEFILE, re.MULTILINE)
        words = [
            *command.split(),
            "-d",
            str(tmp_path_factory.mktemp("doctrees")),
            "-c",
            str(ROOT / "docs"),
            str(source),
            str(target),
        ]
        return subprocess.run(
            [sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.slow  # .ci/run builds it each time
def test_all_pages_are_built_and_nothing_comes_from_the_network(build: Build, tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    pages = {page.relative_to(ROOT).with_suffix("") for page in (ROOT / "docs").rglob("*.md")}
    built = {page.relative_to(tmp_path).with_suffix("") for page in tmp_path.rglob("*.html")}
    assert pages | {Path(top).with_suffix("") for top in TOPS} <= built
    assert (tmp_path / "index.html").read_text(encoding="utf-8").count("Quickstart") > 1
    for page in tmp_path.rglob("*.html"):
        assert not LOADED_FROM_ELSEWHERE.search(page.read_text(encoding="utf-8")), page


def test_a_link_that_leads_nowhere_and_a_page_out_of_the_index_fail(build: Build, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    (source / "README.md").write_text("# One\n\n[two](docs/two.md)\n")
    (source / "CHANGELOG.md").write_text("# Changes\n")
    (source / "docs" / "README.md").write_text("# Index\n\n## Part\n\n[two](two.md)\n")
    (source / "docs" / "glossary.md").write_text("# Words\n")
    (source / "docs" / "two.md").write_text("# Two\n\n[one](../README.md#one)\n")
    assert build(source, tmp_path / "whole").returncode == 0
    (source / "docs" / "two.md").write_text("# Two\n\n[three](three.md) [one](../README.md#other)\n")
    (source / "docs" / "four.md").write_text("# Four\n")
    done = build(source, tmp_path / "broken")
    assert done.returncode == 1
    for said in ("three.md", "'other'", "four.md: WARNING: document isn't included in any toctree"):
        assert said in done.stderr
