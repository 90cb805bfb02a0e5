"""Cancelling work that goes on in the background."""

from __future__ import annotations

from collections.abc import Callable

StopFn = Callable[[], bool]
"""Whether what is at work should be given up; asked every few megabytes."""


class Stopped(Exception):
    """Given up, as was asked for; not an error of a run."""
