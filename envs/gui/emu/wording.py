"""The words of goals in four languages: English sentences with named fields, and their translations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Formatter

from vlrl.envs.gui.emu.strings import LANGUAGES, WORDS, language_of_goals

SENTENCES: dict[str, tuple[str, str, str]] = {}
"""English → German, French, Spanish, all with the same fields in braces."""
AND = {"de": "und", "fr": "et", "es": "y"}


def worded(english: str, /, **fields: object) -> str:
    """The sentence, or the word of `tr`, in the language of goals, with its fields filled in.

    Raises:
        LookupError: if it has no translations, in English too: a goal is in all languages or in none.
    """
    language = language_of_goals()
    others = SENTENCES.get(english) or WORDS.get(english)
    if others is None:
        raise LookupError(
            f"the goal's words {english!r} have no translations; give them to add_sentences, in a table of "
            "vlrl/envs/gui/emu/tasks/wording"
        )
    if language == "en":
        return english.partition("|")[0].format(**fields)
    return others[LANGUAGES.index(language) - 1].format(**fields)


def listed(items: Sequence[str], english: str = " and ") -> str:
    """Several things in a row: in English with the given word between them, else as "a, b und c"."""
    language = language_of_goals()
    if language == "en" or len(items) < 2:
        return english.join(items)
    word = AND[language]
    if language == "es" and re.match(r"\W*(i|hi(?![ae]))", items[-1], re.IGNORECASE):
        word = "e"  # as Spanish has it before the sound of i
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def chained(english: str, items: Sequence[str]) -> str:
    """Several things, one after the other as a sentence with {first} and {next} has two of them."""
    said = items[0]
    for item in items[1:]:
        said = worded(english, first=said, next=item)
    return said


def quoted(text: str) -> str:
    """What stands on the screen or is to be typed, in quotation marks."""
    return worded("“{text}”", text=text)


def add_sentences(table: str) -> None:
    """Add a table: an English sentence, then a line each for "de: ", "fr: " and "es: ", then an empty line.

    A sentence that means two things says which after a bar, as in `add_words`.

    Raises:
        ValueError: if a translation is missing or has other fields than the English, or there are two.
    """
    for paragraph in table.strip().split("\n\n"):
        english, *lines = paragraph.strip().split("\n")
        found = tuple(
            line.removeprefix(f"{name}: ") for name, line in zip(LANGUAGES[1:], lines, strict=False)
        )
        if len(lines) != 3 or any(text == line for text, line in zip(found, lines, strict=True)):
            raise ValueError(f"the goal's words {english!r} need lines that begin with de:, fr: and es:")
        if any(fields_of(text) != fields_of(english) for text in found):
            raise ValueError(f"a translation of the goal's words {english!r} has other fields than they have")
        german, french, spanish = found
        if SENTENCES.setdefault(english, (german, french, spanish)) != found:
            raise ValueError(f"the goal's words {english!r} are translated twice; add |kind to one of them")


def fields_of(sentence: str) -> set[str]:
    """The names in braces."""
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


add_sentences("""
“{text}”
de: „{text}“
fr: “{text}”
es: “{text}”
""")
