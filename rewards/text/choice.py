"""The reward of a multiple-choice question: one letter, or one option's text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from vlrl.parsing.extract import Part, references, scored_text
from vlrl.parsing.text import normalize
from vlrl.scoring.author import reward

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# "A" alone, or "(A)", "A.", "A)", "A:" and perhaps the option's text; "A cat" is text.
_LABELLED = re.compile(r"(?:\(([A-Za-z])\)[.:]?|([A-Za-z])[.):])\s*(.*)|([A-Za-z])", re.DOTALL)
_ANOTHER_LETTER = re.compile(r"(?<![^\W_])(?:[A-Z]|[a-z](?=[.):]))(?![^\W_])")


@reward(range=(0.0, 1.0))
def multiple_choice(
    completion: str,
    answer: Any,
    *,
    choices: Sequence[str] | None = None,
    part: Part = "answer",
) -> float:
    """1 if the completion names the right option, by letter, by text or by both, and no other, else 0.

    Range {0, 1}. With `choices` (the row's metadata of that name, or an option) the text after a letter must
    be that letter's, and a text alone must be one option's, both after `vlrl.parsing.text.normalize`.
    Without, the text after a letter must be the answer's, if that has one, and may name no other letter in
    any case. Source: the usual accuracy of multiple choice; VLM-R1's mcq picks the likeliest of all the
    capital letters that it finds, R1-V's compares strings. Several letters, letters and another option's
    text, an answer repeated, a letter inside a sentence and empty text score 0.

    Args:
        completion: what the model wrote.
        answer: a letter ("B", "(B)", "B. cat"), or the text of an option.
        choices: the options in order, with or without their letters.
        part: what is compared; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample's answer is not exactly one of its options, or its options are not a list of
            2 to 26 texts.
    """
    options = None if choices is None else _options(choices)
    right = references(answer)
    if len(right) > 1:
        raise ValueError(f"the sample's answer is a list of {len(right)}; give the one right option")
    letter, text = _read(right[0])
    if options is not None:
        expected = _index(letter, text, options)
        if expected is None:
            raise ValueError(
                f"the sample's answer {right[0]!r:.60} is not one of its choices {options!r:.200}"
            )
        said = scored_text(completion, part)
        return float(said is not None and _index(*_read(said), options) == expected)
    said = scored_text(completion, part)
    return float(said is not None and _agrees(_read(said), letter, text))


def _options(choices: Sequence[str]) -> list[str]:
    is_list = isinstance(choices, Sequence) and not isinstance(choices, str | bytes)
    if not is_list or not 2 <= len(choices) <= len(LETTERS) or not all(isinstance(c, str) for c in choices):
        raise ValueError(f"the sample's choices are {choices!r:.100}; give a list of 2 to 26 texts")
    options = []
    for expected, choice in zip(LETTERS, choices, strict=False):
        letter, text = _read(choice.strip())
        options.append(normalize(text if letter == expected and text else choice))
    return options


def _read(text: str) -> tuple[str | None, str]:
    """(letter or None, the text after it, or all of it)."""
    match = _LABELLED.fullmatch(text)
    if not match:
        return None, text
    letter = match[1] or match[2] or match[4]
    return letter.upper(), (match[3] or "").strip()


def _index(letter: str | None, text: str, options: Sequence[str]) -> int | None:
    """Which option is meant; None if none or more than one."""
    if letter is not None and LETTERS.index(letter) < len(options):
        index = LETTERS.index(letter)
        return index if not text or normalize(text) == options[index] else None
    whole = normalize(text if letter is None else f"{letter} {text}")
    same = [index for index, option in enumerate(options) if option == whole]
    return same[0] if len(same) == 1 else None


def _agrees(said: tuple[str | None, str], letter: str | None, text: str) -> bool:
    """Whether it is the answer, where the other options are not known."""
    said_letter, said_text = said
    if said_letter is None or letter is None:
        return said_letter is None and bool(text) and normalize(said_text) == normalize(text)
    if said_letter != letter:
        return False
    if not said_text:
        return True
    if text:
        return normalize(said_text) == normalize(text)
    return not _ANOTHER_LETTER.search(unicodedata.normalize("NFKC", said_text))
