"""A run's metrics as columns of JSON, with the axes that they can be drawn against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from vlrl.tracking.metrics import TIME_PARTS, describe

MAX_POINTS = 2000
"""Of a curve; of a longer run each point is the mean of several steps."""
DIGITS = 6
"""Significant digits of a number."""

Line = Mapping[str, float | None]


def curves(metrics: Sequence[Line], samples_per_step: float | None) -> dict[str, Any]:
    """Every metric that a run logged.

    Args:
        metrics: a dict for each step, from `vlrl.tracking.sinks.read_metrics`.
        samples_per_step: completions generated for a step, if that is known.

    Returns:
        `axes`: {step, samples, tokens, hours: a number a point}, those that are known, counted from the
        run's beginning to the end of the step; `series`: {name: a number or null a point};
        `meanings`: {name: words}; `steps_per_point`; `time_parts`: names in the order of a step.
    """
    steps = [line for line in metrics if any(name != "step" for name in line)]
    width = max(1, -(-len(steps) // MAX_POINTS))
    names = dict.fromkeys(name for line in steps for name in line if name != "step")
    series = {name: _binned([line.get(name) for line in steps], width) for name in names}
    return {
        "axes": {name: values[::width] for name, values in _axes(steps, samples_per_step)},
        "series": series,
        "meanings": {name: describe(name) for name in names},
        "steps_per_point": width,
        "time_parts": list(TIME_PARTS),
    }


def _axes(steps: Sequence[Line], samples_per_step: float | None) -> list[tuple[str, list[float]]]:
    """(name, values) of each axis that is known; a sum over the steps so far, for those that are counted."""
    axes: list[tuple[str, list[float]]] = [("step", [float(line["step"] or 0) for line in steps])]
    if samples_per_step:
        axes.append(("samples", [(x + 1) * samples_per_step for x in axes[0][1]]))
    seconds = [line.get("time_s/step") or 0.0 for line in steps]
    rates = [line.get("throughput/tokens_per_s") or 0.0 for line in steps]
    tokens = [rate * taken for rate, taken in zip(rates, seconds, strict=True)]
    if any(tokens):
        axes.append(("tokens", [float(round(total)) for total in accumulate(tokens)]))
    if any(seconds):
        axes.append(("hours", [round(total / 3600, 7) for total in accumulate(seconds)]))
    return axes


def _binned(values: Sequence[float | None], width: int) -> list[float | None]:
    """Means of so many steps each; null where none of them has a number."""
    if width == 1:
        return [_short(value) for value in values]
    out = []
    for start in range(0, len(values), width):
        known = [value for value in values[start : start + width] if value is not None]
        out.append(_short(sum(known) / len(known)) if known else None)
    return out


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
