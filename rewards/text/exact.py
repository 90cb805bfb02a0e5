"""Rewards that compare an answer's text: exactly, after normalisation, and for yes or no."""

from __future__ import annotations

from typing import Any

from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, references, scored_text
from vlrl.parsing.text import normalize
from vlrl.scoring.author import reward


@reward(range=(0.0, 1.0))
def answer_exact(completion: str, answer: Any, *, part: Part = "answer") -> float:
    """1 if the completion is exactly <think>…</think><answer>ANSWER</answer>, else 0.

    [text = reference], white space around either left out; of several references any will do. Range {0, 1}.
    Text outside the tags, a second answer, or a tag inside a part scores 0, so listing all answers cannot
    win. The comparison is of strings: "8" is not "8.0" or "08".

    Raises:
        ValueError: if the sample has no answer; nothing is right then, "None" least of all.
    """
    return float(scored_text(completion, part) in references(answer))


@reward(range=(0.0, 1.0))
def answer_normalized(completion: str, answer: Any, *, part: Part = "answer", consensus: int = 1) -> float:
    """Share of the needed annotators who said the same, after normalisation.

    min(1, #{references r: normalize(r) = normalize(text)} / consensus). Range [0, 1]; {0, 1} for consensus 1.
    Source: VQA accuracy is consensus 3 over ten annotators (Antol et al. 2015, arXiv 1505.00468);
    the official script also averages over leaving each annotator out.
    Empty text, all answers at once and the answer repeated score 0.

    Args:
        completion: what the model wrote.
        answer: a text, or a list of the annotators' texts.
        part: what is compared; see `vlrl.parsing.extract`.
        consensus: so many equal references make a full score.

    Raises:
        ValueError: if the sample has no answer, or fewer than `consensus`.
        ConfigError: if consensus is below 1.
    """
    right = references(answer)
    if consensus < 1:
        raise ConfigError(f"consensus={consensus}; it counts references, so give 1 or more")
    if len(right) < consensus:
        raise ValueError(f"the sample has {len(right)} references, fewer than consensus={consensus}")
    said = scored_text(completion, part)
    if said is None:
        return 0.0
    found = normalize(said)
    return min(1.0, sum(normalize(reference) == found for reference in right) / consensus)


@reward(range=(0.0, 1.0))
def yes_no(completion: str, answer: Any, *, part: Part = "answer") -> float:
    """1 if the completion says the right one of yes and no, and nothing else, else 0.

    [normalize(text) = answer]. Range {0, 1}. Source: VLM-R1's yes_no reward, which takes the first "yes" or
    "no" it finds, also in "know", and scores 1 when neither side has any. "yes no", "yes, …" and empty text
    score 0.

    Raises:
        ValueError: if the sample's answer is neither true, false, "yes" nor "no".
    """
    if isinstance(answer, bool):
        answer = "yes" if answer else "no"
    right = normalize(answer) if isinstance(answer, str) else None
    if right not in ("yes", "no"):
        raise ValueError(f"the sample's answer is {answer!r:.60}; it must be yes or no")
    said = scored_text(completion, part)
    return float(said is not None and normalize(said) == right)
