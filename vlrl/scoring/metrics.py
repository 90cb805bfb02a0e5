"""Numbers that rewards publish beside their scores, such as a judge's tokens, cost and latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

_SOURCES: list[Callable[[], dict[str, float]]] = []


def publish_metrics(take: Callable[[], dict[str, float]]) -> Callable[[], dict[str, float]]:
    """Decorate a function that returns a reward's numbers since it was last called, by metric name.

    It is called once a step, in every process that scores, and once an evaluation; it returns {} when there
    is nothing to say. Numbers of several processes are put together by their names, see `merged_metrics`.
    """
    _SOURCES.append(take)
    return take


def take_metrics() -> dict[str, float]:
    """The numbers of every source since they were last taken."""
    return {name: value for take in _SOURCES for name, value in take().items()}


def merged_metrics(of_processes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Numbers that several processes have published: means of `…_fraction` and `…_s`, sums of all others."""
    merged: dict[str, list[float]] = {}
    for metrics in of_processes:
        for name, value in metrics.items():
            merged.setdefault(name, []).append(value)
    return {
        name: sum(values) / (len(values) if name.endswith(("_fraction", "_s")) else 1)
        for name, values in merged.items()
    }
