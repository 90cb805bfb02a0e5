"""Means over held-out rows with their 95 % intervals: greedy, mean@n, pass@k and majority@k."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from vlrl.evaluation.answers import HOWS, HeldoutAnswer

Z = 1.96
"""Quantile of the normal distribution for 95 %."""

NUM_RESAMPLES = 1_999
BATCH = 100
"""Resamples made at once: all of them at once need gigabytes for many rows."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over rows.

    Attributes:
        value: the mean; nan without rows.
        low: of the 95 % interval; nan where one row alone tells nothing of others.
        high: likewise.
        num_rows: that the mean is over.
    """

    value: float
    low: float
    high: float
    num_rows: int

    def loggable(self) -> dict[str, float | None]:
        """JSON-ready fields: what is not a number is null."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


def estimate(values: Sequence[float], are_counts: bool = False) -> Estimate:
    """The mean of rows' values with its interval.

    Rows that are right or wrong have Wilson's, which holds for few rows and near 0 and 1. Where a row's value
    is a share or a graded reward, rows are resampled: a row's answers depend on each other, rows do not.

    Args:
        values: [num_rows].
        are_counts: they count something: 0 and 1 are numbers among others.
    """
    count = len(values)
    if not count:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = math.fsum(values) / count
    if not are_counts and all(value in (0.0, 1.0) for value in values):
        return Estimate(mean, *wilson(mean, count), count)
    return Estimate(mean, *(_bootstrap(values) if count > 1 else (math.nan, math.nan)), count)


def wilson(accuracy: float, count: int) -> tuple[float, float]:
    """95 % interval of an accuracy measured on `count` samples (Wilson 1927)."""
    centre = (accuracy + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = Z / (1 + Z * Z / count) * math.sqrt(accuracy * (1 - accuracy) / count + (Z / (2 * count)) ** 2)
    return max(0.0, centre - half), min(1.0, centre + half)


def _bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Percentile interval of the mean (Efron and Tibshirani 1993, §13.3), the same at every call."""
    from scipy import stats  # takes a second

    found = stats.bootstrap(
        (np.asarray(values, np.float64),),
        np.mean,
        n_resamples=NUM_RESAMPLES,
        method="percentile",
        batch=BATCH,
        rng=0,
    )
    low, high = found.confidence_interval
    return float(low), float(high)


def pass_at_k(num_answers: int, num_passed: int, k: int) -> float:
    """Chance that one of k answers passes, without bias (Chen et al. 2021, arXiv 2107.03374, Eq. 1).

    Args:
        num_answers: n, at least k.
        num_passed: c.
        k: answers that are looked at.
    """
    return 1.0 - math.comb(num_answers - num_passed, k) / math.comb(num_answers, k)


def majority_at_k(votes: Sequence[str], values: Sequence[float], k: int) -> float:
    """The mean value of the answers with the most votes of k, averaged over all choices of k of the answers.

    Wang et al. 2022 (self-consistency, arXiv 2203.11171), without the luck of one choice. Of a tie it is the
    mean of all that tie.

    Args:
        votes: [n], what each answer says.
        values: [n], what each one is worth.
        k: answers that vote, at most n.
    """
    by_vote: dict[str, list[float]] = defaultdict(list)
    for vote, value in zip(votes, values, strict=True):
        by_vote[vote].append(value)
    # (answers chosen, most votes so far, votes that tie) → (number of choices, sum of the tied votes' values
    # over them). Which answers of a vote are chosen averages out, so each counts as its vote's mean value.
    states: dict[tuple[int, int, int], tuple[int, float]] = {(0, 0, 0): (1, 0.0)}
    for of_vote in by_vote.values():
        mean, after = math.fsum(of_vote) / len(of_vote), dict[tuple[int, int, int], tuple[int, float]]()
        for (chosen, most, ties), (ways, total) in states.items():
            for count in range(min(len(of_vote), k - chosen) + 1):
                times = math.comb(len(of_vote), count)
                if count > most:
                    key, added = (chosen + count, count, 1), ways * mean
                elif count == most and count:
                    key, added = (chosen + count, most, ties + 1), total + ways * mean
                else:
                    key, added = (chosen + count, most, ties), total
                ways_before, total_before = after.get(key, (0, 0.0))
                after[key] = (ways_before + ways * times, total_before + added * times)
        states = after
    tied = math.fsum(total / ties for (chosen, _, ties), (_, total) in states.items() if chosen == k)
    return tied / math.comb(len(votes), k)


def ks(num_answers: int) -> list[int]:
    """The k of pass@k: powers of two up to n, and n."""
    return [k for k in range(1, num_answers + 1) if k & (k - 1) == 0 or k == num_answers]


def voting_ks(num_answers: int) -> list[int]:
    """The k of majority@k: the same, but what one or two answers vote for is worth their mean."""
    return [k for k in ks(num_answers) if k > 2 or k == num_answers]


def episode_values(answers: Iterable[HeldoutAnswer]) -> dict[str, list[float]]:
    """Each row's mean of every number of its episodes, "episode/NAME": of the greedy ones if there are any.

    Args:
        answers: of all rows, in their order.
    """
    rows: dict[tuple[str, int, str], dict[str, list[HeldoutAnswer]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        if answer.episode:
            rows[answer.set, answer.row, answer.sample_id][answer.how].append(answer)
    found: dict[str, list[float]] = defaultdict(list)
    for of_row in rows.values():
        episodes = [answer.episode for answer in of_row["greedy"] or of_row["sampled"]]
        for name in dict.fromkeys(name for episode in episodes for name in episode):
            numbers = [episode[name] for episode in episodes if name in episode]
            found[f"episode/{name}"].append(math.fsum(numbers) / len(numbers))
    return dict(found)


def row_values(
    answers: Iterable[HeldoutAnswer], num_answers: int, threshold: float
) -> dict[str, list[float]]:
    """Each row's value of every measure, by its name; an answer without a score does not count.

    Args:
        answers: of all rows, in their order.
        num_answers: sampled answers that a row was to have, n.
        threshold: an answer of that value passes.
    """
    rows: dict[tuple[str, int, str], dict[str, list[HeldoutAnswer]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        if answer.value is not None:
            rows[answer.set, answer.row, answer.sample_id][answer.how].append(answer)
    found: dict[str, list[float]] = {"greedy": [], f"mean@{num_answers}": []}
    if num_answers > 1:
        found |= {f"pass@{k}": [] for k in ks(num_answers)} | {
            f"majority@{k}": [] for k in voting_ks(num_answers)
        }
    for of_row in rows.values():
        greedy, sampled = ([a.value for a in of_row[how] if a.value is not None] for how in HOWS)
        if greedy:
            found["greedy"].append(math.fsum(greedy) / len(greedy))
        if not sampled:
            continue
        found[f"mean@{num_answers}"].append(math.fsum(sampled) / len(sampled))
        if num_answers > 1:
            num_passed = sum(value >= threshold for value in sampled)
            for k in ks(num_answers):
                if k <= len(sampled):
                    found[f"pass@{k}"].append(pass_at_k(len(sampled), num_passed, k))
            votes = [answer.vote for answer in of_row["sampled"]]
            for k in voting_ks(num_answers):
                if k <= len(sampled):
                    found[f"majority@{k}"].append(majority_at_k(votes, sampled, k))
    return found
