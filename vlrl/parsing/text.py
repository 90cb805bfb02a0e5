"""Texts as they are compared: case, punctuation, articles, number words and spaces do not count."""

from __future__ import annotations

import re
import unicodedata

_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGIT_OF = {**{word: str(number) for number, word in enumerate(_NUMBERS)}, "none": "0"}
_ARTICLES = {"a", "an", "the"}
_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d(?!\d))")
_GONE = re.compile(r"['’`]|(?<!\d)\.|\.(?!\d)")
# A number's minus stays; so do $, %, & and the like, which have a meaning of their own.
_PUNCTUATION = re.compile(r"-(?!\d)|(?<=\w)-(?=\d)|[;:/\[\]\"{}()=+\\_><@,?!“”…*]")


def normalize(text: str) -> str:
    """A text as VQA compares it: case, punctuation, articles, number words and spaces do not count.

    In order: Unicode NFKC and case folding; thousands separators, apostrophes and points outside a number go;
    other punctuation (not $, %, &, #, a number's minus) becomes a space; zero to ten and none become digits;
    a, an, the go; white space becomes one space. What would leave nothing is not done: "A" stays "a".

    Source: the official VQA evaluation (vqaEval.py); differences are in docs/rewards.md.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = _PUNCTUATION.sub(" ", _GONE.sub("", _THOUSANDS.sub("", folded)))
    words = [_DIGIT_OF.get(word, word) for word in bare.split()]
    kept = [word for word in words if word not in _ARTICLES] or words or folded.split()
    return " ".join(kept)
