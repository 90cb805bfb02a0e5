r"""Answers of MathVista and MathVerse, by the rules of their scripts, and without the GPT-4 that they call.

Both official scorers let GPT-4 take the short answer out of the response, and MathVerse's lets it judge that
answer too. Here the short answer is the content of the last \boxed{}, else what follows the last "answer is"
or "answer:", else the last line that is not empty; of it a letter in parentheses, the last number, or the
last list. From there on MathVista's official normalisation is used as it is. Figures are comparable with each
other, not with those of a leaderboard that used GPT-4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, Literal, TypeAlias

from vlrl.parsing.extract import Part, references, scored_text
from vlrl.rewards.math.reward import math
from vlrl.scoring.author import reward

AnswerType: TypeAlias = Literal["text", "integer", "float", "list"]

_BOXED = re.compile(r"\\boxed\{([^{}]{0,200}(?:\{[^{}]{0,200}\}[^{}]{0,200}){0,8})\}")
_ANNOUNCED = re.compile(r"answer(?:\s+is|:)[ \t:]*(.*)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,18})(?:\.[0-9]{1,18})?|-?\.[0-9]{1,18}")
_LIST = re.compile(r"\[[^\[\]]{0,500}\]")
_IN_PARENTHESES = re.compile(r"\(([a-zA-Z])\)")
_LETTER = re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z])")


@reward(range=(0.0, 1.0))
def mathvista(
    completion: str,
    answer: Any,
    *,
    answer_type: AnswerType = "text",
    choices: Sequence[str] | None = None,
    precision: float | None = None,
    part: Part = "answer",
) -> float:
    """1 if the normalised answer equals the published one, else 0.

    Range {0, 1}. Source: MathVista (Lu et al. 2024, arXiv 2310.02255; evaluation/calculate_score.py). With
    choices: a letter in parentheses or alone is its choice, any other text the choice that is fewest edits
    away. integer: int(float(text)). float: rounded to `precision` places. list: the text. What is extracted
    without GPT-4 is said in this file's first lines.

    Args:
        completion: what the model wrote.
        answer: the published answer; of a choice its text.
        answer_type: of the row.
        choices: of the row; None for a free answer.
        precision: decimal places of a float.
        part: what is read; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample has no answer.
    """
    (right,) = references(answer)[:1]
    text = scored_text(completion, part)
    if text is None:
        return 0.0
    said = short_answer(text)
    if choices:
        return float(_choice(text if text in choices else said, choices) == right)
    if answer_type in ("integer", "float"):
        number = _last_number(said) or _last_number(text)
        return float(number is not None and _rounded(number, answer_type, precision) == right)
    if answer_type == "list":
        lists = _LIST.findall(said) or _LIST.findall(text)
        return float(bool(lists) and lists[-1] == right)
    return float(said == right)


@reward(range=(0.0, 1.0))
def mathverse(
    completion: str,
    answer: Any,
    *,
    question_type: str = "free-form",
    limit_s: float = 2.0,
    part: Part = "answer",
) -> float:
    """1 if the letter, or the value of the expression, is the published one, else 0.

    Range {0, 1}. Source: MathVerse (Zhang et al. 2024, arXiv 2403.14624), whose score is GPT-4's judgement on
    whether two answers are the same. Here a choice is right if its letter is, and a free answer if
    math-verify finds the same value (`math`).

    Args:
        completion: what the model wrote.
        answer: the published answer, a letter or an expression.
        question_type: of the row: "multi-choice" or "free-form".
        limit_s: of `math`.
        part: what is read; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample has no answer.
    """
    (right,) = references(answer)[:1]
    text = scored_text(completion, part)
    if text is None:
        return 0.0
    said = short_answer(text)
    if question_type == "multi-choice":
        letters = _IN_PARENTHESES.findall(said) or _LETTER.findall(said)
        return float(bool(letters) and letters[0].upper() == right.strip("().").upper())
    return math(said, right, limit_s=limit_s, part="whole") if said else 0.0


def short_answer(text: str) -> str:
    """What of a response is its answer: boxed, announced, or on the last line."""
    boxed = _BOXED.findall(text)
    if boxed:
        return str(boxed[-1]).strip()
    announced = [found.strip() for found in _ANNOUNCED.findall(text) if found.strip()]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = announced[-1] if announced else lines[-1]
    return said.strip("*").removesuffix(".").strip("\"'* ")


def _choice(said: str, choices: Sequence[str]) -> str:
    """The official rule: a letter's choice, else the one that is fewest edits away, the first of several."""
    from rapidfuzz.distance import Levenshtein

    letters = _IN_PARENTHESES.findall(said)
    said = letters[0].upper() if letters else said
    options = ascii_uppercase[: len(choices)]
    if said in options and len(said) == 1:
        return choices[options.index(said)]
    return min(choices, key=lambda choice: Levenshtein.distance(said, choice))


def _last_number(text: str) -> str | None:
    numbers = _NUMBER.findall(text)
    return numbers[-1].replace(",", "") if numbers else None


def _rounded(number: str, answer_type: str, precision: float | None) -> str:
    if answer_type == "integer":
        return str(int(float(number)))
    return str(round(float(number), None if precision is None else int(precision)))
