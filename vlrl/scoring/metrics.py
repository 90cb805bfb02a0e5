"""Numbers that rewards publish beside their scores, such as a judge's tokens, cost and latency."""

from __future__ import annotations

from collections.abc import Callable

_SOURCES: list[Callable[[], dict[str, float]]] = []


def publish_metrics(take: Callable[[], dict[str, float]]) -> Callable[[], dict[str, float]]:
    """Decorate a function that returns a reward's numbers since it was last called, by metric name.

    It is called once a step in the driver, and once an evaluation; it returns {} when there is nothing to
    say.
    """
    _SOURCES.append(take)
    return take


def take_metrics() -> dict[str, float]:
    """The numbers of every source since they were last taken."""
    return {name: value for take in _SOURCES for name, value in take().items()}
