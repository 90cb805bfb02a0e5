"""An action as a text says it, before it means anything: a name, arguments, and where in the text they stand.

Every grammar is read into a `ParsedAction`, whose methods turn arguments into checked values. What fails is
an ActionError with the span of the argument.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, get_args

from vlrl.envs.gui.actions import NOTCH_PX, Button, Pixel
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.frames import Grid
from vlrl.envs.gui.codecs.grammar.keys import chord, key_name, split_chord

MAX_TEXT = 4000
"""Most characters of a text argument."""
MAX_WAIT_S = 60.0
"""Longest wait or press."""
MAX_SCROLL_PX = 10_000
"""Furthest scroll."""

BUTTONS: Mapping[str, Button] = {name: name for name in get_args(Button)}
"""The mouse's, by what grammars call them."""
STATUSES: Mapping[str, bool] = {"success": True, "failure": False}
"""How a task ended, as Qwen says it."""

Span: TypeAlias = tuple[int, int]
"""[start, end) in characters of the model's text."""

Meaning = TypeVar("Meaning")

# What no keyboard types: control characters but newline and tab, and halves of a surrogate pair.
_UNTYPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Argument:
    """A value of numbers, texts, lists and mappings, and where it is written."""

    value: Any
    span: Span


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """An action as a text says it; see the module.

    Attributes:
        name: of the action.
        span: of the whole.
        name_span: of its name.
        arguments: by their names; a null counts as not given.
    """

    name: str
    span: Span
    name_span: Span
    arguments: Mapping[str, Argument]

    def has(self, *names: str) -> bool:
        """True if any of them is given."""
        return any(self._given(name) is not None for name in names)

    def without(self, name: str, value: Any) -> ParsedAction:
        """The same where a value stands for none."""
        if name not in self.arguments or self.arguments[name].value != value:
            return self
        left = {key: argument for key, argument in self.arguments.items() if key != name}
        return replace(self, arguments=left)

    def unknown(self, reason: str = "") -> ActionError:
        """The error of an action that the grammar does not have."""
        why = f": {reason}" if reason else ""
        return ActionError("unknown_action", f"{self.name[:40]!r} is no action here{why}", self.name_span)

    def wrong(self, name: str, reason: str) -> ActionError:
        """The error of an argument that is given and cannot be meant."""
        return ActionError(
            "bad_argument", f"{self.name[:40]}: {name[:40]} {reason}", self.arguments[name].span
        )

    def check_names(self, known: Collection[str]) -> None:
        """Refuse arguments that no action of the grammar takes."""
        for name in self.arguments:
            if name not in known:
                raise self.wrong(name, f"is no argument; there are {', '.join(sorted(known))}")

    def text(self, name: str, default: str | None = None) -> str:
        """A text that a keyboard can type; a carriage return, and the newline after it, is a newline."""
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "must be a text")
        if len(value) > MAX_TEXT:
            raise self.wrong(name, f"has {len(value)} characters; {MAX_TEXT} are allowed")
        value = value.replace("\r\n", "\n").replace("\r", "\n")
        if _UNTYPED.search(value):
            raise self.wrong(name, "has a character that cannot be typed")
        return value

    def number(self, name: str, least: float, most: float, default: float | None = None) -> float:
        """A number from least to most."""
        value = self._value(name, default)
        if not _is_number(value) or not least <= value <= most:
            raise self.wrong(name, f"must be a number from {least:g} to {most:g}")
        return float(value)

    def milliseconds(self, name: str, default: int, per_unit: float = 1000) -> int:
        """A time in milliseconds; `per_unit` of them are written as 1."""
        return round(self.number(name, 0, MAX_WAIT_S * 1000 / per_unit, default / per_unit) * per_unit)

    def choice(self, name: str, meanings: Mapping[str, Meaning], default: str | None = None) -> Meaning:
        """One of some words, in any case."""
        value = self._value(name, default)
        word = value.strip().lower() if isinstance(value, str) else value
        if not isinstance(word, str) or word not in meanings:
            raise self.wrong(name, f"must be one of {', '.join(meanings)}")
        return meanings[word]

    def chord(self, *names: str, separator: str = "+") -> tuple[str, ...]:
        """Keys pressed together: a text such as "ctrl+s", or a list of such."""
        name = self.first_of(*names)
        value = self._value(name, None)
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.wrong(name, "must be a text or a list of texts")
        try:
            words = [part for word in value for part in _words(word, separator)]
            return chord(words)
        except ValueError as error:
            raise self.wrong(name, f"has {error}") from None

    def key(self, *names: str) -> str:
        """One key."""
        name = self.first_of(*names)
        try:
            return key_name(self.text(name))
        except ValueError as error:
            raise self.wrong(name, f"has {error}") from None

    def one_key_chord(self, name: str) -> tuple[str, ...]:
        """One key, or a capital, which is shift and its letter; a list may hold it."""
        value = self._value(name, None)
        word = value[0] if isinstance(value, list) and len(value) == 1 else value
        if not isinstance(word, str):
            raise self.wrong(name, "must be one key")
        try:
            return chord((word,))
        except ValueError as error:
            raise self.wrong(name, f"has {error}") from None

    def point(self, name: str, grid: Grid) -> Pixel:
        """A place, [x, y]."""
        value = self._value(name, None)
        if not isinstance(value, list) or len(value) != 2 or not all(map(_is_number, value)):
            raise self.wrong(name, "must be two numbers, [x, y]")
        return self.pixel(grid, value[0], value[1], self.arguments[name].span)

    def xy(self, grid: Grid, x: str = "x", y: str = "y") -> Pixel:
        """A place whose two numbers are arguments of their own."""
        values = []
        for name in (x, y):
            values.append(self._value(name, None))
            if not _is_number(values[-1]):
                raise self.wrong(name, "must be a number")
        spans = self.arguments[x].span, self.arguments[y].span
        return self.pixel(grid, values[0], values[1], (min(spans)[0], max(spans)[1]))

    def pixel(self, grid: Grid, x: float, y: float, span: Span) -> Pixel:
        """The pixel of two written numbers."""
        try:
            return grid.pixel(x, y)
        except (ValueError, OverflowError):
            reason = f"{self.name[:40]}: the place lies outside the image"
            raise ActionError("outside", reason, span) from None

    def first_of(self, *names: str) -> str:
        """The first of some names that is given; the first of all if none is."""
        return next((name for name in names if self.has(name)), names[0])

    def _given(self, name: str) -> Any:
        return self.arguments[name].value if name in self.arguments else None

    def _value(self, name: str, default: Any) -> Any:
        value = self._given(name)
        if value is None and default is None:
            reason = f"{self.name[:40]} needs {name}"
            raise ActionError("missing_argument", reason, self.span)
        return default if value is None else value


def notches(pixels: int) -> int:
    """A scroll in notches of the wheel, the nearest number; not 0 but of 0."""
    if pixels == 0:
        return 0
    return max(1, round(abs(pixels) / NOTCH_PX)) * (1 if pixels > 0 else -1)


def seconds(duration_ms: int) -> float:
    """A time as a grammar writes it that counts seconds; a whole number where it is one."""
    return duration_ms // 1000 if duration_ms % 1000 == 0 else duration_ms / 1000


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _words(text: str, separator: str) -> list[str]:
    if len(text) == 1:
        return [text]
    return text.split() if separator == " " and " " in text.strip() else split_chord(text)
