"""What is wrong with a program, by a few rules of our own: nothing is run or handed to a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

KEYWORDS = frozenset(
    (
        *("and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "except"),
        *("finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "not", "or", "pass"),
        *("raise", "return", "try", "while", "with", "yield", "None", "True", "False"),
    )
)
BUILT_IN = frozenset(
    (
        *("abs", "all", "any", "bool", "dict", "enumerate", "filter", "float", "input", "int", "len"),
        *("list", "map", "max", "min", "open", "print", "range", "reversed", "round", "set", "sorted"),
        *("str", "sum", "tuple", "zip"),
    )
)
BLOCKS = ("class", "def", "elif", "else", "except", "finally", "for", "if", "try", "while", "with")
STATEMENTS = (*BLOCKS, "from", "import", "return")
PAIRS = {")": "(", "]": "[", "}": "{"}
TOKEN = re.compile(
    r"(?P<string>\"\"\"[^\"]*\"\"\"|\"[^\"\n]*\"|'[^'\n]*')|(?P<comment>#[^\n]*)|(?P<word>\.?[^\W\d]\w*)"
    r"|(?P<number>\d[\w.]*)|(?P<bracket>[()\[\]{}])|(?P<line>\n)|(?P<sign>[=!<>+*/%-]?=|:|,)"
)


class Token(NamedTuple):
    """A piece of a program; `kind` is the name of its group in TOKEN."""

    kind: str
    text: str
    start: int


class Problem(NamedTuple):
    """What is wrong in a line.

    Attributes:
        start: first and `end` last character that is shown; both the same where something is missing.
        line: from 1 on.
        kind: "undefined", "colon" or "bracket".
        name: that is not defined.
    """

    start: int
    end: int
    line: int
    kind: str
    name: str = ""


def tokens(text: str) -> Iterator[Token]:
    """The pieces of a program; what is none of them is left out."""
    for match in TOKEN.finditer(text):
        yield Token(match.lastgroup or "", match[0], match.start())


@lru_cache(maxsize=128)
def problems(text: str) -> tuple[Problem, ...]:
    """All problems, from the top to the bottom."""
    pieces = [one for one in tokens(text) if one.kind not in ("string", "comment")]
    return tuple(sorted({*_colons(text, pieces), *_brackets(text, pieces), *_undefined(text, pieces)}))


def _problem(text: str, start: int, kind: str, name: str = "") -> Problem:
    return Problem(start, start + len(name), text.count("\n", 0, start) + 1, kind, name)


def _end_of_line(text: str, start: int) -> int:
    """Where the line's code ends, before blanks and a comment."""
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end]
    comment = next((one.start for one in tokens(line) if one.kind == "comment"), len(line))
    return start + len(line[:comment].rstrip())


def _statements(pieces: list[Token]) -> Iterator[list[Token]]:
    """Tokens line by line."""
    line: list[Token] = []
    for piece in pieces:
        if piece.kind == "line":
            yield line
            line = []
        else:
            line.append(piece)
    yield line


def _colons(text: str, pieces: list[Token]) -> Iterator[Problem]:
    for line in _statements(pieces):
        if line and line[0].text in BLOCKS:
            depth, has_colon = 0, False
            for piece in line:
                depth += (piece.text in "([{") - (piece.text in ")]}") if piece.kind == "bracket" else 0
                has_colon |= piece.text == ":" and depth <= 0
            if not has_colon and depth <= 0:
                yield _problem(text, _end_of_line(text, line[0].start), "colon")


def _brackets(text: str, pieces: list[Token]) -> Iterator[Problem]:
    """Brackets that are not closed before the next statement, and those that close nothing."""
    opened: list[Token] = []
    for line in _statements(pieces):
        if opened and line and line[0].text in STATEMENTS:
            yield _problem(text, _end_of_line(text, opened[0].start), "bracket")
            opened = []
        for piece in line:
            if piece.kind == "bracket" and piece.text in PAIRS:
                if not opened or opened.pop().text != PAIRS[piece.text]:
                    yield _problem(text, piece.start, "bracket")
                    opened = []
            elif piece.kind == "bracket":
                opened.append(piece)
        if opened and line and line[-1].text not in (",", *PAIRS.values()):
            yield _problem(text, _end_of_line(text, opened[0].start), "bracket")
            opened = []
    if opened:
        yield _problem(text, _end_of_line(text, opened[0].start), "bracket")


def _undefined(text: str, pieces: list[Token]) -> Iterator[Problem]:
    known = _defined(pieces) | KEYWORDS | BUILT_IN
    depth = 0
    for piece, after in zip(pieces, [*pieces[1:], Token("", "", 0)], strict=False):
        if piece.kind == "bracket":
            depth += 1 if piece.text in "([{" else -1
        is_argument = depth > 0 and after.text == "="
        is_name = piece.kind == "word" and not piece.text.startswith(".")
        if is_name and not is_argument and piece.text not in known:
            yield _problem(text, piece.start, "undefined", piece.text)


def _defined(pieces: list[Token]) -> set[str]:
    """Names that are assigned, imported, parameters, or what a loop goes over; anywhere in the file."""
    found: set[str] = set()
    for line in _statements(pieces):
        words = [piece.text for piece in line]
        match words[:1]:
            case ["import" | "from"]:
                found.update(words[1:])
            case ["def" | "class"]:
                found.update(word for n, word in enumerate(words) if n == 1 or words[n - 1] in ("(", ","))
        before = words[: words.index("(")] if "(" in words else words
        signs = [n for n, word in enumerate(before) if word in ("=", "+=", "-=", "*=", "/=")]
        found.update(words[: signs[-1]] if signs else ())
        for n, word in enumerate(words):
            if word == "for" and "in" in words[n:]:
                found.update(words[n + 1 : n + words[n:].index("in")])
            elif word == "as":
                found.update(words[n + 1 : n + 2])
    return found
