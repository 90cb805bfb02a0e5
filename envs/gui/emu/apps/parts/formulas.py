"""Formulas of the spreadsheet: "=SUM(B2:B5)*2" is read by a small parser of its own, never by Python's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

Cells: TypeAlias = tuple[tuple[str, ...], ...]
"""Rows of what was typed into the cells; rows and columns that are missing are empty."""
TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|([A-Za-z])(\d{1,3})(?![\w(])|([A-Za-z]+)|([-+*/(),:]))")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
REFERENCE = re.compile(r"(?<![A-Za-z\d])([A-Za-z])(\d{1,3})(?![\w(])")
FUNCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "SUM": sum,
    "AVERAGE": lambda numbers: sum(numbers) / len(numbers),
    "MIN": lambda numbers: min(numbers, default=0.0),
    "MAX": lambda numbers: max(numbers, default=0.0),
    "COUNT": lambda numbers: float(len(numbers)),
}
MAX_DEPTH = 40
"""Parentheses and references inside one another."""
MAX_FORMULA = 512
"""Longest formula in characters: with each cell evaluated once, this bounds what a table costs."""
Known: TypeAlias = dict[tuple[int, int], float]
"""(column, row) → the number that a formula came to, of the cells that were evaluated already."""


class FormulaError(Exception):
    """Says what a cell shows in the place of a number, as "#DIV/0!"."""


def content(cells: Cells, column: int, row: int) -> str:
    """What was typed into a cell, counted from 0; "" outside of the table."""
    return cells[row][column] if row < len(cells) and column < len(cells[row]) else ""


def shown(cells: Cells, column: int, row: int) -> str:
    """What a cell shows: its text, or the number that its formula comes to."""
    text = content(cells, column, row)
    return text if not text.startswith("=") else _evaluated(cells)[column, row]


@lru_cache(maxsize=128)
def _evaluated(cells: Cells) -> dict[tuple[int, int], str]:
    """What every formula of a table shows. Row by row, each once: a cell may be referred to 600 times."""
    found: dict[tuple[int, int], str] = {}
    known: Known = {}
    for row, line in enumerate(cells):
        for column, text in enumerate(line):
            if text.startswith("="):
                try:
                    found[column, row] = written(_number_of(cells, text, (column, row), (), known))
                except FormulaError as error:
                    found[column, row] = str(error)
    return found


def written(number: float) -> str:
    """A number as a cell shows it, with at most ten digits."""
    return f"{number + 0.0:.10g}"


def moved(text: str, row_of: Callable[[int], int | None]) -> str:
    """A formula whose references follow their rows, counted from 0; one to a row that is gone is an error."""

    def follow(match: re.Match[str]) -> str:
        row = row_of(int(match[2]) - 1)
        return f"{match[1]}0" if row is None else f"{match[1]}{row + 1}"

    return REFERENCE.sub(follow, text) if text.startswith("=") else text


def _number_of(
    cells: Cells, text: str, place: tuple[int, int], trail: tuple[tuple[int, int], ...], known: Known
) -> float:
    """What a formula at a place comes to; `trail` are the places whose formulas need it."""
    if place not in known:
        if len(text) > MAX_FORMULA:
            raise FormulaError("#ERROR!")
        number = _Parser(cells, text, (*trail, place), known).whole()
        if not math.isfinite(number):
            raise FormulaError("#NUM!")
        known[place] = number
    return known[place]


def _number_in(
    cells: Cells, place: tuple[int, int], trail: tuple[tuple[int, int], ...], known: Known
) -> float | None:
    """The number in a cell; None where there is a text or nothing."""
    if place in trail:
        raise FormulaError("#CYCLE!")
    text = content(cells, *place)
    if text.startswith("="):
        return _number_of(cells, text, place, trail, known)
    return float(text) if NUMBER.fullmatch(text.strip()) else None


class _Parser:
    """Reads one formula from left to right and reckons as it goes."""

    def __init__(self, cells: Cells, text: str, trail: tuple[tuple[int, int], ...], known: Known) -> None:
        self.cells, self.trail, self.depth, self.known = cells, trail, len(trail), known
        self.tokens: list[tuple[str, str]] = []
        at = 1
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if match is None:
                raise FormulaError("#ERROR!")
            number, column, row, word, sign = match.groups()
            kind = "number" if number else "cell" if column else "word" if word else "sign"
            self.tokens.append((kind, f"{column}{row}".upper() if column else number or word or sign))
            at = match.end()

    def whole(self) -> float:
        number = self._sum()
        if self.tokens:
            raise FormulaError("#ERROR!")
        return number

    def _next(self, *signs: str) -> str:
        """Take the next sign if it is one of these."""
        if self.tokens and self.tokens[0][0] == "sign" and self.tokens[0][1] in signs:
            return self.tokens.pop(0)[1]
        return ""

    def _need(self, sign: str) -> None:
        if not self._next(sign):
            raise FormulaError("#ERROR!")

    def _sum(self) -> float:
        number = self._product()
        while sign := self._next("+", "-"):
            number += self._product() if sign == "+" else -self._product()
        return number

    def _product(self) -> float:
        number = self._factor()
        while sign := self._next("*", "/"):
            other = self._factor()
            if sign == "/" and not other:
                raise FormulaError("#DIV/0!")
            number = number * other if sign == "*" else number / other
        return number

    def _factor(self) -> float:
        self.depth += 1
        if self.depth > MAX_DEPTH or not self.tokens:
            raise FormulaError("#ERROR!")
        if sign := self._next("-", "+"):
            number = self._factor() * (-1 if sign == "-" else 1)
        elif self._next("("):
            number = self._sum()
            self._need(")")
        else:
            number = self._value(*self.tokens.pop(0))
        self.depth -= 1
        return number

    def _value(self, kind: str, text: str) -> float:
        if kind == "number":
            return float(text)
        if kind == "cell":
            number = _number_in(self.cells, _place(text), self.trail, self.known)
            if number is None and content(self.cells, *_place(text)):
                raise FormulaError("#VALUE!")
            return number or 0.0
        if kind != "word" or text.upper() not in FUNCTIONS:
            raise FormulaError("#NAME?" if kind == "word" else "#ERROR!")
        self._need("(")
        numbers = self._argument()
        while self._next(","):
            numbers += self._argument()
        self._need(")")
        if text.upper() == "AVERAGE" and not numbers:
            raise FormulaError("#DIV/0!")
        return float(FUNCTIONS[text.upper()](numbers))

    def _argument(self) -> list[float]:
        """A range of cells, or an expression."""
        if [kind for kind, _ in self.tokens[:3:2]] == ["cell", "cell"] and self.tokens[1][1] == ":":
            (column, row), _, (column2, row2) = (
                _place(t) if k == "cell" else (0, 0) for k, t in self.tokens[:3]
            )
            del self.tokens[:3]
            places = [
                (x, y)
                for y in range(min(row, row2), max(row, row2) + 1)
                for x in range(min(column, column2), max(column, column2) + 1)
            ]
            found = (_number_in(self.cells, place, self.trail, self.known) for place in places)
            return [number for number in found if number is not None]
        if [kind for kind, _ in self.tokens[:1]] == ["cell"] and self.tokens[1:2] in (
            [("sign", ",")],
            [("sign", ")")],
        ):
            number = _number_in(self.cells, _place(self.tokens.pop(0)[1]), self.trail, self.known)
            return [] if number is None else [number]
        return [self._sum()]


def _place(name: str) -> tuple[int, int]:
    """(column, row) of "B3", counted from 0."""
    row = int(name[1:]) - 1
    if row < 0:
        raise FormulaError("#REF!")
    return ord(name[0]) - ord("A"), row
