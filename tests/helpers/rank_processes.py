"""Processes that call a function each, as ranks of one group do."""

from __future__ import annotations

import multiprocessing
import socket
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import torch

LIMIT_S = 240.0


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RankProcesses:
    """Some processes, as a context; what a function keeps in its module stays there between calls."""

    def __init__(self, count: int) -> None:
        self.count = count
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(count)]
        self._pipes = [mine for mine, _ in pairs]
        self._processes = [context.Process(target=_serve, args=(theirs,), daemon=True) for _, theirs in pairs]

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


def _serve(pipe: Any) -> None:
    torch.set_num_threads(1)
    while True:
        try:
            function, given = pipe.recv()  # imports the function's module
            answer = None, function(*given)
        except Exception:  # whatever it is, the test shows it
            answer = traceback.format_exc(), None
        pipe.send(answer)
