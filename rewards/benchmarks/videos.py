"""Official scorers of questions and moments in videos: Video-MME, MVBench and temporal grounding."""

from __future__ import annotations

import re
from typing import Any

from vlrl.parsing.extract import Part, references, scored_text
from vlrl.rewards.visual.video import last_span, overlap_in_time, true_span
from vlrl.scoring.author import Scored, reward

_PREFIXES = (
    "The best answer is",
    "The correct answer is",
    "The answer is",
    "The answer",
    "The best option is",
    "The correct option is",
    "Best answer:",
    "Best option:",
)
RECALLED_AT = (0.3, 0.5, 0.7)
"""IoUs at which a moment counts as found."""


@reward(range=(0.0, 1.0))
def option_letter(completion: str, answer: Any, *, letters: str = "ABCD", part: Part = "answer") -> float:
    """1 if the first capital letter of an option in the text is the answer's, else 0.

    Range {0, 1}. Source: Video-MME (Fu et al. 2024, arXiv 2405.21075; eval_your_results.py), which leaves out
    phrases such as "The best answer is" first. "A dog, so B" is read as A: ask for the letter alone.

    Args:
        completion: what the model wrote.
        answer: the right letter.
        letters: the options' letters.
        part: what is read; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample's answer is not one of the letters.
    """
    (right,) = references(answer)[:1]
    if right not in letters:
        raise ValueError(f"the sample's answer {right!r:.60} is not one of {letters}")
    said = scored_text(completion, part)
    if said is None:
        return 0.0
    for prefix in _PREFIXES:
        said = said.replace(prefix, "")
    found = re.search(f"[{re.escape(letters)}]", said)
    return float(found is not None and found[0] == right)


@reward(range=(0.0, 1.0))
def mvbench(completion: str, answer: Any, *, part: Part = "answer") -> float:
    """1 if the first word of the text names the option of the answer, else 0.

    [letter of the answer = letter in the first word], without case, brackets and points. Range {0, 1}.
    Source: MVBench (Li et al. 2024, arXiv 2311.17005; mvbench.ipynb, check_ans), which compares the first
    words "(a)". Its hole, that a first word "(" or "." is right, is closed.

    Args:
        completion: what the model wrote.
        answer: the right option, "(B) text", or its letter.
        part: what is read; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample has no answer.
    """
    (right,) = references(answer)[:1]
    said = scored_text(completion, part)
    return float(said is not None and _option(said) == _option(right) != "")


def _option(text: str) -> str:
    word = (text.split() or [""])[0]
    return re.sub(r"[().:]", "", word).lower()


@reward(range=(0.0, 1.0))
def temporal_grounding(completion: str, answer: Any, *, part: Part = "answer") -> Scored:
    """IoU of the last span in the text with the true span, in seconds; R1@0.3, 0.5 and 0.7 as notes.

    Range [0, 1]; its mean is mIoU. Source: TALL (Gao et al. 2017, arXiv 1705.02101), R@1 with IoU ≥ m. A text
    that holds no span scores 0. `temporal_iou` asks for a span alone.

    Args:
        completion: what the model wrote.
        answer: the true span, [start, end] in seconds.
        part: what is read; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample's answer is not a span.
    """
    right = true_span(answer)
    text = scored_text(completion, part)
    said = None if text is None else last_span(text)
    overlap = 0.0 if said is None else overlap_in_time(said, right)
    return Scored(overlap, {f"R1@{least}": float(overlap >= least) for least in RECALLED_AT})
