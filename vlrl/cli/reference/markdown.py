"""Docstrings and tables as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MADE_BY = "Generated from the code by `make reference`; `tests/test_reference.py` compares the two."
"""A sentence on top of every page, so that nobody edits it by hand."""

_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):\n((?:    .*\n|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^\*{0,2}([A-Za-z_][\w.]*): (.*)$")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring in Google's style, taken apart.

    Attributes:
        purpose: its first paragraph, on one line.
        body: the paragraphs between the first and the sections.
        arguments: name → meaning on one line, from Args, else from Attributes.
        errors: class → when it is raised, from Raises.
    """

    purpose: str
    body: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


def docstring_of(text: str) -> Docstring:
    """Take a docstring apart; its indentation may still be that of the source."""
    text = inspect.cleandoc(text) + "\n"
    sections = {name: _entries(lines) for name, lines in _SECTION.findall(text)}
    purpose, _, body = _SECTION.sub("", text).strip().partition("\n\n")
    return Docstring(
        " ".join(purpose.split()),
        body.strip(),
        sections.get("Args") or sections.get("Attributes", {}),
        sections.get("Raises", {}),
    )


def _entries(lines: str) -> dict[str, str]:
    """The `name: meaning` entries of a section; deeper lines continue an entry."""
    entries: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(lines).splitlines():
        if match := _ENTRY.match(line):
            name = match[1]
            entries[name] = match[2]
        elif name:
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries


def escape(text: str) -> str:
    """Text in which Markdown sees nothing but code spans: `<` and `*` stand for themselves."""

    def plain(part: str) -> str:
        return re.sub(r"([\\<*`|~])", r"\\\1", part)

    parts = re.split(r"(?<!`)(`[^`\n]+`)(?!`)", text)
    return "".join(part if index % 2 else plain(part) for index, part in enumerate(parts))


def prose(text: str) -> str:
    """The paragraphs of a docstring; one with indented lines (a formula, a list) keeps its layout."""
    paragraphs = [each for each in text.split("\n\n") if each.strip()]
    return "\n\n".join(
        f"```text\n{each.rstrip()}\n```" if re.search(r"^ ", each, re.MULTILINE) else escape(each)
        for each in paragraphs
    )


def page(parts: Iterable[str]) -> str:
    """Parts of a page with a blank line between two of them; empty ones are left out."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already, without line breaks. A bar inside a code span is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def code(text: str) -> str:
    """A code span, whatever backticks the text has."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def anchor(title: str) -> str:
    """The fragment that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", title.lower())
    return kept.replace(" ", "-")


def link(name: str) -> str:
    """A link to the heading of that name on the same page."""
    return f"[{code(name)}](#{anchor(name)})"


def range_text(bounds: Sequence[float] | None) -> str:
    """An interval as `[0, 1]`, or "" if none is declared."""
    return "[{:g}, {:g}]".format(*bounds) if bounds else ""
