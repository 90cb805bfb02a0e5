"""Processes of `vlrl data check` that are forks, for tests that start dozens of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from typing import Any

from rank_processes import warm_context


class AuditContext:
    """Stand-in for multiprocessing's `spawn` in `vlrl.check.data.workers`: forks that have the imports."""

    def __init__(self, method: str) -> None:
        """Be asked for by name, as `get_context` is."""
        assert method == "spawn"
        self._context = warm_context()
        self.Pipe = self._context.Pipe

    def Process(self, *, target: Callable[..., None], args: tuple[Any, ...], name: str) -> ForkServerProcess:
        """A process with this process's environment, as one that is spawned has."""
        given = (dict(os.environ), target, *args)
        process: ForkServerProcess = self._context.Process(target=_with_environment, args=given, name=name)
        return process


def _with_environment(environment: Mapping[str, str], target: Callable[..., None], *args: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*args)
