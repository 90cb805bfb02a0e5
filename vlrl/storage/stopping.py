"""Cancelling work that goes on in the background."""

from __future__ import annotations

from collections.abc import Callable

StopFn = Callable[[], bool]
"""Whether the work should be cancelled; called every few megabytes."""


class Stopped(Exception):
    """The work was cancelled on request; not an error of the run."""
