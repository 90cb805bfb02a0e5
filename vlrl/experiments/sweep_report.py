"""The results of a sweep: a row for each combination of values, and a image of their curves."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from vlrl.experiments.registry import RunRecord, is_run, read_run
from vlrl.experiments.sweep import Sweep
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

METRIC = "heldout/accuracy_greedy"
OTHERWISE = "reward/mean"
"""Shown where no run has METRIC."""
SUMMARY_OF = {
    METRIC: "heldout_accuracy_after_greedy",
    "heldout/accuracy_sampled": "heldout_accuracy_after_sampled",
}
"""Metrics whose last value stands in the summary: after the last step there is no line of metrics."""


@dataclass(frozen=True, slots=True)
class Row:
    """A combination of values.

    Attributes:
        values: of the options that vary.
        by_seed: the metric's last value of each run that has one.
        mean: of these; None without any.
        half_width: of the mean's 95 % interval over seeds (Student's t); None with fewer than two.
        statuses: of the runs.
    """

    values: Mapping[str, Any]
    by_seed: Mapping[int, float]
    mean: float | None
    half_width: float | None
    statuses: Sequence[str]


def results(sweep: Sweep, metric: str) -> list[Row]:
    """A row for each combination, the largest mean first; those without a value last."""
    rows = []
    for values in {str(run.values): run.values for run in sweep.runs}.values():
        runs = [run for run in sweep.runs if run.values == values]
        records = {run.seed: _record(sweep.folder / run.name) for run in runs}
        known = {seed: _last(record, metric) for seed, record in records.items() if record}
        by_seed = {seed: value for seed, value in known.items() if value is not None}
        numbers = list(by_seed.values())
        rows.append(
            Row(
                values=values,
                by_seed=by_seed,
                mean=statistics.fmean(numbers) if numbers else None,
                half_width=half_width(numbers),
                statuses=[record.status if record else "not started" for record in records.values()],
            )
        )
    return sorted(rows, key=lambda row: -np.inf if row.mean is None else row.mean, reverse=True)


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of a mean's 95 % interval, as of a normal distribution's sample (Student 1908)."""
    if len(values) < 2:
        return None
    return float(stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5)


def metric_of(sweep: Sweep, wanted: str | None) -> str:
    """The metric that is reported: the one asked for, else held-out accuracy, else the reward."""
    if wanted:
        return wanted
    records = [_record(sweep.folder / run.name) for run in sweep.runs]
    has_heldout = any(record and _last(record, METRIC) is not None for record in records)
    return METRIC if has_heldout else OTHERWISE


def draw(sweep: Sweep, rows: Sequence[Row], metric: str, path: Path) -> bool:
    """Draw the metric by step, a line for each row and the range over its seeds; False if no run has it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes, has_curves = figure.subplots(), False
    for row in rows:
        curves = [_curve(sweep.folder / run.name, metric) for run in sweep.runs if run.values == row.values]
        steps = sorted({step for curve in curves for step in curve})
        known = [[curve[step] for curve in curves if step in curve] for step in steps]
        if not steps:
            continue
        (line,) = axes.plot(
            steps, [statistics.fmean(each) for each in known], "o-", markersize=3, label=label(row)
        )
        axes.fill_between(
            steps, list(map(min, known)), list(map(max, known)), alpha=0.15, color=line.get_color()
        )
        has_curves = True
    axes.set(xlabel="step", ylabel=metric, title=f"mean and range over {len(sweep.seeds)} seeds")
    axes.grid(alpha=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    if has_curves:
        axes.legend(frameon=False, fontsize=8)
        figure.savefig(path, dpi=130, metadata={"Software": None})
    return has_curves


def label(row: Row) -> str:
    """The values of a row for people."""
    return ", ".join(f"{key}={value}" for key, value in row.values.items()) or "the config"


def _record(folder: Path) -> RunRecord | None:
    return read_run(folder) if is_run(folder) else None


def _last(record: RunRecord, metric: str) -> float | None:
    at_the_end = record.value(SUMMARY_OF[metric]) if metric in SUMMARY_OF else None
    return record.value(metric) if at_the_end is None else at_the_end


def _curve(folder: Path, metric: str) -> dict[int, float]:
    """The metric by step."""
    steps = read_metrics(folder / METRICS_FILE)
    return {int(s["step"] or 0): value for s in steps if (value := s.get(metric)) is not None}
