"""Rows audited by several processes, any of which a broken file may kill without ending the check.

The parent hands out chunks of rows and gets one result a row back, in order. When a worker dies, the row it
was at is known: it is tried once more, alone, and reported if that worker dies too; the rest of the chunk is
given out again. Workers die with the parent: their pipe closes.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from vlrl.check.data.records import Job, Problem, RowAudit
from vlrl.errors import VlrlError

RowKey = tuple[int, int]
"""(index of the source, index of the row)."""

CHUNK_ROWS = 32
"""Rows handed out at once: enough to hide the pipe, few enough to end together."""

ROW_TIMEOUT_S = 300.0
"""A worker that says nothing for so long is killed, and its row reported."""

FAREWELL_S = 1.0
"""Time for a worker to end by itself before it is killed."""


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Connection
    pending: deque[RowKey] = field(default_factory=deque)
    ready: bool = False
    heard_at: float = field(default_factory=time.monotonic)


def audit_rows(
    job: Job,
    num_workers: int,
    on_row: Callable[[RowAudit], None] = lambda audit: None,
    *,
    row_timeout_s: float = ROW_TIMEOUT_S,
) -> list[RowAudit]:
    """Audit every row of a job; results are in the order of sources and rows, whatever the workers' number.

    Args:
        job: what to audit.
        num_workers: processes.
        on_row: called in this process with each result as it comes in.
        row_timeout_s: longest silence of a worker.

    Raises:
        VlrlError: what stopped a worker before its first row, such as a wrong option.
        KeyboardInterrupt: on Ctrl-C, after the workers are gone.
    """
    pool = _Pool(job, num_workers, row_timeout_s)
    found: dict[RowKey, RowAudit] = {}
    try:
        for audit in pool.run():
            found[audit.source, audit.row] = audit
            on_row(audit)
    finally:
        pool.close()
    return [found[key] for key in sorted(found)]


class _Pool:
    def __init__(self, job: Job, num_workers: int, row_timeout_s: float) -> None:
        self._job, self._row_timeout_s = job, row_timeout_s
        keys = [(s, r) for s, source in enumerate(job.sources) for r in range(source.num_rows)]
        self._chunks = deque(keys[i : i + CHUNK_ROWS] for i in range(0, len(keys), CHUNK_ROWS))
        self._workers: list[_Worker] = []
        self._suspects: set[RowKey] = set()
        self._num_workers = max(1, min(num_workers, len(self._chunks)))

    def run(self) -> Iterator[RowAudit]:
        while self._chunks or any(worker.pending for worker in self._workers):
            while len(self._workers) < self._num_workers and self._chunks:
                self._workers.append(self._start())
            for pipe in wait([worker.pipe for worker in self._workers], timeout=1.0):
                worker = next(w for w in self._workers if w.pipe is pipe)
                if audit := self._hear(worker):
                    yield audit
            yield from self._silent()

    def close(self) -> None:
        for worker in self._workers:
            worker.pipe.close()  # one that waits for a chunk ends by itself, and what it started with it
        for worker in self._workers:
            worker.process.join(FAREWELL_S)
            worker.process.kill()
            worker.process.join()
        self._workers.clear()

    def _start(self) -> _Worker:
        context = get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, self._job), name="vlrl-check")
        # Ctrl-C goes to the whole terminal; only the parent answers it. The mask is inherited, and the worker
        # ignores the signal once it runs. Starting the resource tracker would undo the mask: it comes first.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()
        return _Worker(process, here)

    def _hear(self, worker: _Worker) -> RowAudit | None:
        """Take one message of a worker, or its death."""
        try:
            message = worker.pipe.recv()
        except (EOFError, ConnectionError):
            return self._bury(worker, _death(worker), retry=True)
        if isinstance(message, VlrlError):
            raise message
        worker.heard_at = time.monotonic()
        audit: RowAudit | None = message
        if audit is None:
            worker.ready = True
        else:
            worker.pending.popleft()
        if not worker.pending and self._chunks:
            with suppress(ConnectionError):  # it has just died; the next message says so
                worker.pipe.send(self._chunks[0])
                worker.pending = deque(self._chunks.popleft())
        return audit

    def _silent(self) -> Iterator[RowAudit]:
        now = time.monotonic()
        for worker in [w for w in self._workers if w.pending and now - w.heard_at > self._row_timeout_s]:
            worker.process.kill()
            if audit := self._bury(worker, f"took more than {self._row_timeout_s:.0f} s", retry=False):
                yield audit

    def _bury(self, worker: _Worker, how: str, *, retry: bool) -> RowAudit | None:
        """Forget a dead worker; the row it was at is suspect, the others of its chunk are given out again."""
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        if not worker.ready:
            raise VlrlError(f"a worker of the check {how} before its first row; try --workers 1, or --debug")
        if not worker.pending:
            return None
        suspect = worker.pending.popleft()
        if worker.pending:
            self._chunks.appendleft(list(worker.pending))
        if retry and suspect not in self._suspects:  # another program may have taken all the memory
            self._suspects.add(suspect)
            self._chunks.append([suspect])
            return None
        source, row = suspect
        message = f"{self._job.sources[source].section}, row {row}: the process reading it {how}"
        problem = Problem("kills the reader", f"{message}; remove the row, or make its media again")
        return RowAudit(source, row, f"row {row}", problems=(problem,))


def _death(worker: _Worker) -> str:
    worker.process.join()
    code = worker.process.exitcode
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    hint = ", out of memory?" if -code == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-code).name}{hint}"


def _serve(pipe: Connection, job: Job) -> None:
    """A worker: open everything once, then answer every row of every chunk."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The cores are shared out by process already.
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    from vlrl.check.data.audit import Auditor

    try:
        auditor = Auditor(job)
    except VlrlError as error:
        pipe.send(error)
        return
    try:
        pipe.send(None)
        while True:
            chunk: Sequence[RowKey] = pipe.recv()
            for source, row in chunk:
                pipe.send(auditor.audit(source, row))
    except (EOFError, ConnectionError):
        return  # the parent is gone or has what it wanted
