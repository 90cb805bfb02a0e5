"""Editing a text: every function takes a text and a cursor and gives new ones."""

from __future__ import annotations

from functools import lru_cache

from vlrl.envs.gui.emu.drawing.glyphs import Font, face
from vlrl.envs.gui.emu.state import TextCursor

Spans = tuple[tuple[int, int], ...]
CACHED_CHARS = 400
"""Longest line whose breaks are cached."""


def clamped(cursor: TextCursor, text: str) -> TextCursor:
    """A cursor within the text."""
    size = len(text)
    if cursor[0] <= size and cursor[1] <= size:
        return cursor
    return TextCursor(min(cursor.anchor, size), min(cursor.caret, size))


def selected(text: str, cursor: TextCursor) -> str:
    """The selected part."""
    first, last = sorted(cursor)
    return text[first:last]


def insert(text: str, cursor: TextCursor, new: str) -> tuple[str, TextCursor]:
    """Put something in the place of the selection."""
    first, last = sorted(cursor)
    at = first + len(new)
    return text[:first] + new + text[last:], TextCursor(at, at)


def erase(text: str, cursor: TextCursor, *, forward: bool, word: bool) -> tuple[str, TextCursor]:
    """Delete the selection, or else a letter or a word before or after the caret."""
    if cursor.anchor == cursor.caret:
        to = _beside(text, cursor.caret, forward, word)
        cursor = TextCursor(cursor.caret, to)
    return insert(text, cursor, "")


def step(text: str, cursor: TextCursor, *, forward: bool, word: bool, extend: bool) -> TextCursor:
    """Move the caret left or right; a selection that is not extended collapses to that side."""
    if cursor.anchor != cursor.caret and not extend:
        at = max(cursor) if forward else min(cursor)
        return TextCursor(at, at)
    return moved(cursor, _beside(text, cursor.caret, forward, word), extend)


def moved(cursor: TextCursor, caret: int, extend: bool) -> TextCursor:
    """The caret somewhere else; with `extend` what lies between is selected."""
    return TextCursor(cursor.anchor if extend else caret, caret)


def word_at(text: str, at: int) -> TextCursor:
    """The word around a place."""
    first = last = min(at, len(text))
    while first > 0 and _is_word(text[first - 1]):
        first -= 1
    while last < len(text) and _is_word(text[last]):
        last += 1
    if first == last and last < len(text):
        last += 1
    return TextCursor(first, last)


def paragraph_at(text: str, at: int) -> TextCursor:
    """The line around a place, up to the breaks that were typed."""
    last = text.find("\n", at)
    return TextCursor(text.rfind("\n", 0, at) + 1, len(text) if last < 0 else last)


def column_at(text: str, x: int, font: Font) -> int:
    """The gap between letters that is nearest to x pixels from the start of a line."""
    advances, at = face(font).advances, 0
    for index, character in enumerate(text):
        wide = advances[character]
        if x < at + (wide + 1) // 2:
            return index
        at += wide
    return len(text)


@lru_cache(maxsize=64)
def wrap(text: str, width: int, font: Font) -> Spans:
    """(start, end) of every line of a text broken to a width in pixels, between words where there are any.

    A space at which a line is broken belongs to it, a newline to no line; there is always a line.
    """
    spans, start = [], 0
    for paragraph in text.split("\n"):
        spans += [(start + first, start + last) for first, last in _wrap_paragraph(paragraph, width, font)]
        start += len(paragraph) + 1
    return tuple(spans)


def _wrap_paragraph(text: str, width: int, font: Font) -> Spans:
    """The caches keep no long texts: 4096 of them would be as much as a model likes to type."""
    return (_wrapped_short if len(text) <= CACHED_CHARS else _wrapped)(text, width, font)


def _wrapped(text: str, width: int, font: Font) -> Spans:
    if face(font).width(text) <= width:
        return ((0, len(text)),)
    advances, spans = face(font).advances, []
    start = at = 0
    gap = -1
    for index, character in enumerate(text):
        at += advances[character]
        if character == " ":
            gap = index + 1
            continue
        while at > width and index > start:  # what begins after a gap may be too long itself
            end = gap if gap > start else index
            spans.append((start, end))
            start, at = end, face(font).width(text[end : index + 1])
    return (*spans, (start, len(text)))


_wrapped_short = lru_cache(maxsize=4096)(_wrapped)


def _beside(text: str, at: int, forward: bool, word: bool) -> int:
    step = 1 if forward else -1
    if not word:
        return min(max(0, at + step), len(text))
    look = 0 if forward else -1
    while 0 <= at + look < len(text) and not _is_word(text[at + look]):
        at += step
    while 0 <= at + look < len(text) and _is_word(text[at + look]):
        at += step
    return at


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
