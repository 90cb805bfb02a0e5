"""Processes that call a function each, as ranks of one group do."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import torch

LIMIT_S = 240.0


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def warm_context() -> Any:
    """Makes processes that have `warm_rank` imported: forks of one that nothing else has run in.

    The seconds of these imports are paid once for all ranks of a worker's tests, and for what audits data.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["warm_rank", "peft", "vlrl.check.data.audit"])
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:  # it knows nothing of this process's sys.path
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        forkserver.ensure_running()
    return context


class RankProcesses:
    """Some processes, as a context; what a function keeps in its module stays there between calls."""

    def __init__(self, count: int, *, warm: bool = True) -> None:
        """Have them started.

        Args:
            count: of processes.
            warm: they begin with what a rank imports; without it nothing is imported.
        """
        self.count = count
        context = warm_context() if warm else multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(count)]
        self._pipes = [mine for mine, _ in pairs]
        self._processes = [
            context.Process(target=_serve, args=(theirs, dict(os.environ)), daemon=True)
            for _, theirs in pairs
        ]

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the function returns in each process, called there with that process's arguments."""
        for pipe, given in zip(self._pipes, arguments, strict=True):
            pipe.send((function, given))
        answers = []
        for pipe in self._pipes:
            assert pipe.poll(LIMIT_S), "a rank's process did not answer"
            answers.append(pipe.recv())
        failures = [trace for trace, _ in answers if trace is not None]
        assert not failures, "\n".join(failures)
        return [answer for _, answer in answers]


def _serve(pipe: Any, environment: Mapping[str, str]) -> None:
    os.environ.clear()  # of when the first of them was asked for
    os.environ.update(environment)
    torch.set_num_threads(1)
    while True:
        try:
            function, given = pipe.recv()  # imports the function's module
            answer = None, function(*given)
        except Exception:  # whatever it is, the test shows it
            answer = traceback.format_exc(), None
        pipe.send(answer)
