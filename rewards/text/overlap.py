"""Rewards that measure how much two texts share: edits, words, subsequences.

These are soft: a text that is near the reference scores, and a wrong one may score a little. Of several
references the best counts. They are bounded in time because scored texts are
(`vlrl.parsing.extract.MAX_CHARS`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, references, scored_text
from vlrl.parsing.text import normalize
from vlrl.scoring.author import reward

EditKind: TypeAlias = Literal["levenshtein", "indel"]
_WORD = re.compile(r"[^\W_]+")


@reward(range=(0.0, 1.0))
def edit_similarity(
    completion: str,
    answer: Any,
    *,
    kind: EditKind = "levenshtein",
    threshold: float = 0.5,
    part: Part = "answer",
) -> float:
    """1 − edits / length, and 0 up to a threshold; letters compared as they are.

    With s the text and r the reference: levenshtein is 1 − lev(s, r) / max(|s|, |r|), where lev counts
    inserted, deleted and replaced characters; indel is 1 − d(s, r) / (|s| + |r|), where d counts inserted
    and deleted ones. Range {0} ∪ (threshold, 1]. Source: the usual normalised edit distance; indel with
    threshold 0 is python-Levenshtein's `ratio`, which VLM-R1 uses for free text. Empty text, all answers at
    once and the answer repeated score 0 at the default threshold.

    Raises:
        ValueError: if the sample has no answer.
        ConfigError: for another kind.
    """
    from rapidfuzz.distance import Indel, Levenshtein

    measures: dict[str, Callable[[str, str], float]] = {
        "levenshtein": lambda s, r: Levenshtein.normalized_similarity(s, r),
        "indel": lambda s, r: Indel.normalized_similarity(s, r),
    }
    if kind not in measures:
        raise ConfigError(f"kind={kind!r}; edit_similarity knows levenshtein and indel")
    value = _best(completion, answer, part, measures[kind])
    return value if value > threshold else 0.0


@reward(range=(0.0, 1.0))
def anls(completion: str, answer: Any, *, threshold: float = 0.5, part: Part = "answer") -> float:
    """Normalised Levenshtein similarity of DocVQA: max over references of 1 − NL if NL < threshold, else 0.

    NL(s, r) = lev(s, r) / max(|s|, |r|) in lower case with white space runs as one space. Range {0} ∪ (0.5,
    1]. Source: ST-VQA (Biten et al. 2019, arXiv 1905.13648, equation 1). Averaged over samples it is the
    ANLS. Empty text, all answers at once and the answer repeated score 0.

    Raises:
        ValueError: if the sample has no answer.
    """
    from rapidfuzz.distance import Levenshtein

    def distance(said: str, reference: str) -> float:
        return 1.0 - Levenshtein.normalized_distance(_lower(said), _lower(reference))

    value = _best(completion, answer, part, distance)
    return value if 1.0 - value < threshold else 0.0


@reward(range=(0.0, 1.0))
def token_f1(completion: str, answer: Any, *, part: Part = "answer") -> float:
    """F1 of the words, as multisets: 2·common / (words said + words of the reference).

    Words are those of `vlrl.parsing.text.normalize`. Range [0, 1]. Source: SQuAD (Rajpurkar et al. 2016,
    arXiv 1606.05250, section 6.1). Empty text scores 0, an answer repeated n times 2 / (n + 1), and listing
    many answers little, because every word too many counts.

    Raises:
        ValueError: if the sample has no answer.
    """

    def f1(said: str, reference: str) -> float:
        ours, theirs = normalize(said).split(), normalize(reference).split()
        return 2.0 * (Counter(ours) & Counter(theirs)).total() / (len(ours) + len(theirs))

    return _best(completion, answer, part, f1)


@reward(range=(0.0, 1.0))
def rouge_l(completion: str, answer: Any, *, part: Part = "answer") -> float:
    """ROUGE-L: F1 of the longest common subsequence of words, 2·LCS / (words said + words of the reference).

    Words are runs of letters and digits, case folded, not stemmed. Range [0, 1]. Source: Lin 2004, section 3,
    with β = 1, as rouge-score computes it. Empty text scores 0, an answer repeated n times 2 / (n + 1).

    Raises:
        ValueError: if the sample has no answer, or one without a letter or digit.
    """
    return _best(completion, answer, part, lambda s, r: _rouge_l(_words(s), _known_words(r)))


@reward(range=(0.0, 1.0))
def rouge_mean(completion: str, answer: Any, *, part: Part = "answer") -> float:
    """Mean of ROUGE-1, ROUGE-2 and ROUGE-L, each an F1: (R₁ + R₂ + R_L) / 3.

    R_n = 2·common / (n-grams said + n-grams of the reference). Words as in `rouge_l`. A reference of one word
    has no pairs, so for it the mean is that of R₁ and R_L (Video-R1: never more than 2/3).
    Range [0, 1]. Source: Video-R1's reward for free-form answers (arXiv 2503.21776), without its stemming.

    Raises:
        ValueError: if the sample has no answer, or one without a letter or digit.
    """

    def mean(said: str, reference: str) -> float:
        ours, theirs = _words(said), _known_words(reference)
        scores = [_rouge_n(ours, theirs, 1), _rouge_l(ours, theirs)]
        if len(theirs) > 1:
            scores.append(_rouge_n(ours, theirs, 2))
        return sum(scores) / len(scores)

    return _best(completion, answer, part, mean)


def _best(completion: str, answer: Any, part: Part, similarity: Callable[[str, str], float]) -> float:
    right = references(answer)
    said = scored_text(completion, part)
    values = [similarity(said or "", reference) for reference in right]  # also where nothing was said: law 7
    return max(values) if said is not None else 0.0


def _lower(text: str) -> str:
    return " ".join(text.lower().split())


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _known_words(reference: str) -> list[str]:
    words = _words(reference)
    if not words:
        raise ValueError(f"the sample's answer {reference!r:.60} has no words to compare with")
    return words


def _rouge_n(ours: Sequence[str], theirs: Sequence[str], n: int) -> float:
    grams = [Counter(zip(*(words[i:] for i in range(n)), strict=False)) for words in (ours, theirs)]
    return 2.0 * (grams[0] & grams[1]).total() / (grams[0].total() + grams[1].total())


def _rouge_l(ours: Sequence[str], theirs: Sequence[str]) -> float:
    from rapidfuzz.distance import LCSseq

    return 2.0 * LCSseq.similarity(ours, theirs) / (len(ours) + len(theirs))
