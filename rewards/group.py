"""Rewards that see all completions of a prompt: diversity, the length among them, and rank.

Each is called once with the whole group (`@reward(group=True)`): what the policy generated for one prompt,
less the episodes that failed. A group of one has nobody to be compared with and scores 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from vlrl.parsing.extract import Part, scored_text
from vlrl.rewards.inner import inner_reward
from vlrl.scoring.author import reward

MAX_COMPARED = 4000
"""Characters of each text that are compared: time grows with the square of the group's size and of these."""

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""name → a value for every completion."""


@reward(range=(0.0, 1.0), group=True)
def group_diversity(
    completions: Sequence[str],
    answers: Sequence[Any],
    *,
    accuracy: str | None = None,
    accuracy_options: Mapping[str, Any] | None = None,
    threshold: float = 1.0,
    part: Part = "answer",
    **columns: Sequence[Any],
) -> list[float]:
    """How much a completion differs from the others of its prompt: mean over j ≠ i of lev(i, j) / max length.

    Only completions that count are compared: those in form, and with `accuracy` those that are right; the
    rest score 0 and make no other more diverse. Range [0, 1]. Source: mean pairwise distance, here of texts
    (of meanings: DARLING, arXiv 2509.02534). Without an accuracy nonsense is the most diverse of all: give
    one, or put this behind a gate, and keep its weight small.

    Args:
        completions: of one prompt.
        answers: of each the sample's.
        accuracy: the reward that says what is right.
        accuracy_options: its options.
        threshold: its least value that is right.
        part: what is compared; "whole" includes the thinking.
        columns: metadata, for `accuracy`.
    """
    texts = [scored_text(completion, part) for completion in completions]
    right = _right(completions, answers, columns, accuracy, accuracy_options, threshold, "group_diversity")
    counted = [i for i, text in enumerate(texts) if text is not None and right[i]]
    values = [0.0] * len(completions)
    if len(counted) < 2:
        return values
    from rapidfuzz.distance import Levenshtein

    for place, i in enumerate(counted):
        for j in counted[place + 1 :]:
            pair = (str(texts[i])[:MAX_COMPARED], str(texts[j])[:MAX_COMPARED])
            apart = Levenshtein.normalized_distance(*pair) / (len(counted) - 1)
            values[i] += apart
            values[j] += apart
    return [min(1.0, value) for value in values]


@reward(range=(-0.5, 0.5), group=True)
def group_length(
    completions: Sequence[str],
    answers: Sequence[Any],
    *,
    num_tokens: Sequence[int],
    accuracy: str,
    accuracy_options: Mapping[str, Any] | None = None,
    threshold: float = 1.0,
    **columns: Sequence[Any],
) -> list[float]:
    """λ_i = 0.5 − (L_i − min L) / (max L − min L) if completion i is right, else min(0, λ_i).

    L are tokens generated. Range [−0.5, 0.5]; all 0 if all are equally long. Source: Kimi k1.5 (arXiv
    2501.12599, section 2.3.3, length penalty). An addend beside the accuracy: no wrong completion gains.

    Args:
        completions: of one prompt.
        answers: of each the sample's.
        num_tokens: L.
        accuracy: the reward that says what is right.
        accuracy_options: its options.
        threshold: its least value that is right.
        columns: metadata, for `accuracy`.
    """
    asked = {**columns, "num_tokens": num_tokens}
    right = _right(completions, answers, asked, accuracy, accuracy_options, threshold, "group_length")
    shortest, longest = min(num_tokens), max(num_tokens)
    if shortest == longest:
        return [0.0] * len(completions)
    lengths = [0.5 - (length - shortest) / (longest - shortest) for length in num_tokens]
    return [value if is_right else min(0.0, value) for value, is_right in zip(lengths, right, strict=True)]


@reward(range=(0.0, 1.0), group=True)
def group_rank(
    completions: Sequence[str],
    answers: Sequence[Any],
    *,
    measure: str,
    measure_options: Mapping[str, Any] | None = None,
    **columns: Sequence[Any],
) -> list[float]:
    """The share of the others that another reward puts below a completion; a tie counts half.

    (Σ_{j ≠ i} [m_j < m_i] + ½·[m_j = m_i]) / (n − 1): the order counts, not the distance. Range [0, 1]; ½ if
    all are equal. It pays the best of a bad group as much as the best of a good one, so keep an absolute
    reward beside it.

    Args:
        completions: of one prompt.
        answers: of each the sample's.
        measure: the reward that orders them.
        measure_options: its options.
        columns: metadata, for `measure`.
    """
    values = _values(completions, answers, columns, measure, measure_options, "group_rank")
    if len(values) < 2:
        return [0.0] * len(values)
    return [
        (sum((other < value) + 0.5 * (other == value) for other in values) - 0.5) / (len(values) - 1)
        for value in values
    ]


def _right(
    completions: Sequence[str],
    answers: Sequence[Any],
    columns: Columns,
    accuracy: str | None,
    options: Mapping[str, Any] | None,
    threshold: float,
    asker: str,
) -> list[bool]:
    if accuracy is None:
        return [True] * len(completions)
    return [v >= threshold for v in _values(completions, answers, columns, accuracy, options, asker)]


def _values(
    completions: Sequence[str],
    answers: Sequence[Any],
    columns: Columns,
    name: str,
    options: Mapping[str, Any] | None,
    asker: str,
) -> list[float]:
    inner = inner_reward(name, options, asker)
    return [
        inner(completion, answer, {key: values[index] for key, values in columns.items()})
        for index, (completion, answer) in enumerate(zip(completions, answers, strict=True))
    ]
