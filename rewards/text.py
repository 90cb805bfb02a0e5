"""Rewards on the text of a completion."""

from __future__ import annotations

import re
from typing import Any

# The whole completion, nothing before, between (but space) or after; neither part may hold a tag.
THINK_ANSWER = re.compile(
    r"<think>((?:(?!</?think>|</?answer>).)*)</think>\s*<answer>((?:(?!</?think>|</?answer>).)*)</answer>\s*",
    re.DOTALL,
)


def extract_answer(completion: str) -> str | None:
    """The text of <answer> if the whole completion is one think part and one answer part, else None."""
    match = THINK_ANSWER.fullmatch(completion)
    return match.group(2).strip() if match else None


def answer_exact(completion: str, answer: Any, **context: Any) -> float:
    """1 if the completion is exactly <think>…</think><answer>ANSWER</answer>, else 0.

    Range {0, 1}. Text outside the tags, a second answer, or a tag inside a part scores 0, so listing all
    answers cannot win. The comparison is of strings: "8" is not "8.0" or "08".

    Raises:
        ValueError: if the sample has no answer; nothing is right then, "None" least of all.
    """
    if answer is None:
        raise ValueError("the sample has no 'answer' to compare with")
    return float(extract_answer(completion) == str(answer).strip())


def think_answer_format(completion: str, answer: Any, **context: Any) -> float:
    """1 if the completion is one think part and one answer part and nothing else, else 0."""
    return float(extract_answer(completion) is not None)
