"""Two runs on the same held-out rows: the mean difference, and whether it may be chance."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from vlrl.errors import ConfigError
from vlrl.evaluation.kept import SAMPLES_FILE
from vlrl.ledger import FloatArray
from vlrl.tracking.heldout import HELDOUT_FILE, read_heldout
from vlrl.tracking.rollouts.read import read_rollouts

RowKey = tuple[str, str]
"""Set and id of a held-out row."""
NUM_RESAMPLES = 9_999
BATCH = 100
"""Resamples made at once: all of them at once need gigabytes for many rows."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What b is against a, on the rows that both were asked.

    Attributes:
        how: "greedy" or "sampled".
        num_rows: that both answered.
        mean_a: of a's values.
        mean_b: of b's.
        difference: mean_b - mean_a.
        low: of the 95 % interval of the difference.
        high: likewise.
        p_value: two-sided: how often chance alone makes a difference this large, if neither run is better.
        num_better: rows on which b earned more.
        num_worse: rows on which it earned less.
        part: of the held-out rows, "set=NAME" or "KEY=VALUE"; "" for all.
    """

    how: str
    num_rows: int
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    p_value: float
    num_better: int
    num_worse: int
    part: str = ""


@dataclass(frozen=True, slots=True)
class PairedRow:
    """What a and b earned on one row.

    Attributes:
        how: "greedy" or "sampled".
        set: of the held-out rows.
        sample_id: the row's.
        a: its mean value in a.
        b: in b.
        parts: that it belongs to, see `Comparison.part`.
    """

    how: str
    set: str
    sample_id: str
    a: float
    b: float
    parts: Sequence[str] = ()

    @property
    def difference(self) -> float:
        """What b earned more."""
        return self.b - self.a


def paired_rows(a: Path, b: Path, value: str = "accuracy", step: int | None = None) -> list[PairedRow]:
    """The rows that two evaluations share, by default the last ones of two runs; greedy ones first.

    Args:
        a: a run's folder, or one that `vlrl eval --out` wrote.
        b: another one.
        value: "accuracy", the first reward, or "reward", the total.
        step: weight updates before a run's evaluation; None is the last one of each.

    Raises:
        ConfigError: if a run has no such evaluation, or they share no row.
    """
    lines = [_lines(folder, step) for folder in (a, b)]
    answers = [_answers(each, value) for each in lines]
    parts = _parts(lines[0]) or _parts(lines[1])
    found = []
    for how in ("greedy", "sampled"):
        of_a, of_b = (each.get(how, {}) for each in answers)
        for row in of_a:
            if row in of_b:
                found.append(PairedRow(how, *row, of_a[row], of_b[row], parts.get(row, ())))
    if not found:
        raise ConfigError(f"{a} and {b} share no held-out row: were they evaluated on the same data.eval?")
    return found


def compare_runs(rows: Sequence[PairedRow]) -> list[Comparison]:
    """What the rows of `paired_rows` say: greedy, then sampled; of each all rows, then every part."""
    found = []
    for how in dict.fromkeys(row.how for row in rows):
        asked = [row for row in rows if row.how == how]
        for part in ["", *dict.fromkeys(part for row in asked for part in row.parts)]:
            chosen = [row for row in asked if not part or part in row.parts]
            if len(chosen) > bool(part):  # one row of a part tells nothing of others
                a, b = np.array([(row.a, row.b) for row in chosen]).T
                found.append(replace(paired(a, b, how), part=part))
    return found


def paired(a: FloatArray, b: FloatArray, how: str = "", seed: int = 0) -> Comparison:
    """Paired bootstrap of the mean difference (Efron and Tibshirani 1993, §13.3), and a sign-flip test.

    Args:
        a: [num_rows], one run's values.
        b: [num_rows], the other's on the same rows.
        how: is noted.
        seed: of the resampling: the same values give the same interval.
    """
    differences = np.asarray(b, np.float64) - a
    resampled = stats.bootstrap(
        (differences,), np.mean, n_resamples=NUM_RESAMPLES, method="percentile", batch=BATCH, rng=seed
    )
    flipped = stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=NUM_RESAMPLES,
        vectorized=True,
        batch=BATCH,
        rng=seed,
    )
    low, high = resampled.confidence_interval
    return Comparison(
        how=how,
        num_rows=len(differences),
        mean_a=float(np.mean(a)),
        mean_b=float(np.mean(b)),
        difference=float(differences.mean()),
        low=float(low),
        high=float(high),
        p_value=float(flipped.pvalue),
        num_better=int((differences > 0).sum()),
        num_worse=int((differences < 0).sum()),
    )


def _answers(lines: Sequence[Mapping[str, Any]], value: str) -> dict[str, dict[RowKey, float]]:
    """Each row's mean value, for each way in which it was asked."""
    found: dict[str, dict[RowKey, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if line[value] is not None:
            found[line["how"]][line.get("set", ""), line["sample_id"]].append(line[value])
    return {
        how: {row: math.fsum(values) / len(values) for row, values in rows.items()}
        for how, rows in found.items()
    }


def _parts(lines: Sequence[Mapping[str, Any]]) -> dict[RowKey, list[str]]:
    """The sets and categories of each row that has any."""
    return {(line["set"], line["sample_id"]): line["parts"] for line in lines if line.get("parts")}


def _lines(folder: Path, step: int | None) -> list[dict[str, Any]]:
    """The answers of a run's chosen evaluation, or those that `vlrl eval --out` kept."""
    lines = read_heldout(folder)
    if not lines and step is None:
        kept = read_rollouts(folder / SAMPLES_FILE)
        lines = [record["heldout"] | {"step": 0} for record in kept if "heldout" in record]
    if not lines:
        raise ConfigError(
            f"{folder} has no {HELDOUT_FILE} or {SAMPLES_FILE}: it was not evaluated on held-out rows "
            "(data.eval), or not by `vlrl eval --out`"
        )
    steps: Sequence[int] = sorted({line["step"] for line in lines})
    wanted = steps[-1] if step is None else step
    if wanted not in steps:
        raise ConfigError(
            f"{folder} was not evaluated after {wanted} updates, but after {', '.join(map(str, steps))}"
        )
    return [line for line in lines if line["step"] == wanted]
