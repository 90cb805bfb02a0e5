"""The documentation as a site: `make docs` builds it, offline, and fails at a link that leads nowhere."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

project = "vlrl"
author = "the vlrl authors"
copyright = "the vlrl authors, Apache-2.0"
extensions = ["myst_parser", "sphinx_copybutton"]

# The source folder is the repository's root, so that links lead where they lead in the repository:
# a link to a page leads to the page, a link to a source file to a copy of it.
root_doc = "README"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**.md"]
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"]

myst_heading_anchors = 6
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # an example may leave something out
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = "vlrl"
html_show_sphinx = False
html_copy_source = False

LINK = re.compile(r"\]\((?!https?:)([^)#\s]+\.md)[^)]*\)")
INDEX = "docs/README"
BESIDE = {"docs/decisions/README": "docs/decisions/*"}
"""Pages whose subpages are listed under them."""


def sections(index: str) -> Iterator[tuple[str, list[str]]]:
    """(heading, pages) of each section of the index, a page where it is named first."""
    seen: set[str] = set()
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        pages = []
        for link in LINK.findall(body):
            page = (Path(INDEX).parent / link).as_posix().removesuffix(".md")
            page = re.sub(r"\w+/\.\./", "", page)
            if page not in seen and page != root_doc:
                seen.add(page)
                pages.append(page)
        yield heading, pages


def add_contents(app: Any, page: str, source: list[str]) -> None:
    """Give the site the contents that the index by reader has: there is no second list to keep."""
    if page == root_doc:
        index = (Path(app.srcdir) / f"{INDEX}.md").read_text(encoding="utf-8")
        for caption, pages in [("", [INDEX, "docs/glossary", "CHANGELOG"]), *sections(index)]:
            source[0] += toctree(pages, caption)
    elif page in BESIDE:
        source[0] += toctree([BESIDE[page]], glob=True)


def toctree(pages: list[str], caption: str = "", *, glob: bool = False) -> str:
    """Text of the directive that puts pages into the contents."""
    options = [":hidden:", *([f":caption: {caption}"] if caption else []), *([":glob:"] if glob else [])]
    return "\n\n```{toctree}\n" + "\n".join([*options, "", *(f"/{page}" for page in pages)]) + "\n```\n"


def add_index(app: Any, failure: Exception | None) -> None:
    """Servers of files show index.html for a folder."""
    if failure is None:
        shutil.copy(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_index)
