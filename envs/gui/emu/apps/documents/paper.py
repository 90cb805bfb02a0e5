"""PDF files as values: pages of text with headings, and where words stand in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple


class Page(NamedTuple):
    """One page.

    Attributes:
        heading: of the chapter that begins on it; "" where a chapter goes on.
        paragraphs: its text.
        depth: 1 of a heading within a chapter.
    """

    heading: str
    paragraphs: tuple[str, ...]
    depth: int = 0


class Paper(NamedTuple):
    """The content of a PDF file; `title` stands above every page."""

    title: str
    pages: tuple[Page, ...]


class Hit(NamedTuple):
    """Where a word was found.

    Attributes:
        page: from 0 on.
        part: number of the paragraph; -1 for the heading.
        start: first character in it.
    """

    page: int
    part: int
    start: int


@lru_cache(maxsize=32)
def found(paper: Paper, query: str) -> tuple[Hit, ...]:
    """Every place where a word stands, without regard to case; none for an empty one."""
    wanted = query.casefold().strip()
    return tuple(_hits(paper, wanted)) if wanted else ()


def _hits(paper: Paper, wanted: str) -> Iterator[Hit]:
    for number, page in enumerate(paper.pages):
        for part, text in enumerate((page.heading, *page.paragraphs), -1):
            at = text.casefold().find(wanted)
            while at >= 0:
                yield Hit(number, part, at)
                at = text.casefold().find(wanted, at + len(wanted))


def chapters(paper: Paper) -> list[tuple[int, Page]]:
    """(number of the page, from 0 on; the page) of every heading."""
    return [(number, page) for number, page in enumerate(paper.pages) if page.heading]
