"""Rewards for reading text: one minus the word or character error rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vlrl.parsing.extract import Part, references, scored_text
from vlrl.parsing.text import normalize
from vlrl.scoring.author import reward


@reward(range=(0.0, 1.0))
def word_accuracy(
    completion: str,
    answer: Any,
    *,
    normalized: bool = False,
    threshold: float = 0.0,
    part: Part = "answer",
) -> float:
    """1 − WER if that is above the threshold, else 0.

    WER = (words inserted + deleted + replaced) / words of the reference; words are split at white space.
    Range {0} ∪ (threshold, 1]; of several references the best counts. Source: the word error rate, as
    Video-R1's OCR reward has it (arXiv 2503.21776). Empty text scores 0; text around the right one costs a
    word each, so repeating it twice or listing guesses scores 0.

    Args:
        completion: what the model wrote.
        answer: the text to read, or a list of equally good readings.
        normalized: compare after `vlrl.parsing.text.normalize`, so that case and punctuation do not count.
        threshold: accuracies up to it score 0.
        part: what is compared; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample has no answer.
    """
    return _accuracy(completion, answer, part, normalized, threshold, str.split)


@reward(range=(0.0, 1.0))
def character_accuracy(
    completion: str,
    answer: Any,
    *,
    normalized: bool = False,
    threshold: float = 0.5,
    part: Part = "answer",
) -> float:
    """1 − CER if that is above the threshold, else 0: like `word_accuracy`, in characters.

    Runs of white space are one space. Range {0} ∪ (threshold, 1]. For scripts without spaces, and where a
    wrong letter should cost less than a word. Any two texts share some letters, hence the threshold: without
    it, nonsense of the right length scores about 0.2. Empty text and the right text twice score 0.

    Raises:
        ValueError: if the sample has no answer.
    """
    return _accuracy(completion, answer, part, normalized, threshold, lambda text: " ".join(text.split()))


def _accuracy(
    completion: str,
    answer: Any,
    part: Part,
    normalized: bool,
    threshold: float,
    units: Callable[[str], Sequence[str]],
) -> float:
    from rapidfuzz.distance import Levenshtein

    right = references(answer)
    said = scored_text(completion, part)
    if said is None:
        return 0.0
    best = 0.0
    for reference in right:
        ours, theirs = (units(normalize(t) if normalized else t) for t in (said, reference))
        best = max(best, 1.0 - Levenshtein.distance(ours, theirs) / len(theirs))
    return best if best > threshold else 0.0
