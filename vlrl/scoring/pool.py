"""Processes that call rewards, so that one that hangs, crashes or eats memory costs one sample its score.

    driver ── chunks of calls ──► worker 1..n (`vlrl.scoring.worker`) ── outcomes ──► driver

Workers are started when there is work, by exec and not by fork: they know nothing of the driver's CUDA or
Ray. A call over its time limit has its worker killed; a worker that died is replaced, the call it was at is
blamed, and the rest of its chunk is given out again. No call is to blame for a worker that does not start:
that ends the run.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import deque
from collections.abc import Sequence

from vlrl.errors import ScoringError
from vlrl.foreign.failure import Failure, failure_of
from vlrl.scoring.functions import RewardSource
from vlrl.scoring.process import RewardProcess, Watch
from vlrl.scoring.worker import LEAVING, STARTING, Call, Outcome

START_LIMIT_S = 300.0
"""A worker that takes longer to start, or to import a plug-in, ends the run."""
START_ATTEMPTS = 3
"""So many workers in a row that end while they start end the run."""

CHUNK_S, CHUNK_CALLS = 0.05, 256
"""Calls handed out at once: about so long, and at most so many. Chunking changes no result."""
_FIRST_GUESS_S = 0.01
_PROTOCOL = pickle.HIGHEST_PROTOCOL


class Pool:
    """A pool of at most num_workers processes, each with all of the rewards."""

    def __init__(
        self,
        sources: Sequence[RewardSource],
        limits_s: Sequence[float],
        *,
        num_workers: int,
        memory_bytes: int,
        watch: Watch | None = None,
    ) -> None:
        """Nothing is started before there is a call.

        Args:
            sources: of the rewards, by number.
            limits_s: of each, how long a call may take.
            num_workers: most processes.
            memory_bytes: most bytes of data of one.
            watch: what else the processes do.
        """
        self._sources, self._limits_s = list(sources), list(limits_s)
        self._num_workers, self._memory_bytes = num_workers, memory_bytes
        self._watch = watch
        self._workers: set[RewardProcess] = set()
        self._idle: list[RewardProcess] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._mean_s: dict[int, float] = {}

    async def run(self, calls: Sequence[Call]) -> list[tuple[Outcome, float]]:
        """Perform calls: (outcome, seconds) in their order, whatever the number of workers.

        Raises:
            ScoringError: if workers do not start, or end while they import a plug-in.
        """
        work = _Work(calls)
        servers = min(self._num_workers, len(calls))
        async with asyncio.TaskGroup() as group:
            for _ in range(servers):
                group.create_task(self._serve(work))
        if work.broken is not None:
            raise ScoringError(work.broken)
        return [(work.outcomes[index], work.seconds.get(index, 0.0)) for index in range(len(calls))]

    def close(self) -> None:
        """End every worker; a later `run` starts new ones."""
        for worker in self._workers:
            worker.kill()
        self._workers.clear()
        self._idle.clear()

    async def _serve(self, work: _Work) -> None:
        while work.queue and work.broken is None:
            worker = await self._take()
            try:
                if chunk := self._chunk(work):
                    await self._ask(worker, chunk, work)
            except BaseException:  # cancelled in the middle of a chunk: nobody would read the rest
                worker.kill()
                raise
            finally:
                self._give(worker)

    async def _take(self) -> RewardProcess:
        """An idle worker, or a new one if there may be more; else wait."""
        while True:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                self._discard(worker)
            if len(self._workers) < self._num_workers:
                worker = RewardProcess(self._sources, self._memory_bytes, self._watch)
                self._workers.add(worker)
                return worker
            free = asyncio.get_running_loop().create_future()
            self._waiting.append(free)
            await free

    def _give(self, worker: RewardProcess) -> None:
        if worker.alive:
            self._idle.append(worker)
        else:
            self._discard(worker)
        while self._waiting:
            free = self._waiting.popleft()
            if not free.done():  # whoever waited may have been cancelled
                free.set_result(None)
                break

    def _discard(self, worker: RewardProcess) -> None:
        worker.kill()
        self._workers.discard(worker)

    def _chunk(self, work: _Work) -> list[int]:
        """Indices of the next calls: about CHUNK_S of work, and no more than a fair share of what is left."""
        chunk: list[int] = []
        most = min(CHUNK_CALLS, -(-len(work.queue) // self._num_workers))
        expected_s = 0.0
        while work.queue and len(chunk) < most and expected_s < CHUNK_S:
            if work.queue[0] in work.alone and chunk:
                break
            index = work.queue.popleft()
            chunk.append(index)
            expected_s += self._mean_s.get(work.calls[index][0], _FIRST_GUESS_S)
            if index in work.alone:
                break
        return chunk

    async def _ask(self, worker: RewardProcess, chunk: list[int], work: _Work) -> None:
        """Have a chunk performed; what a dying worker leaves undone goes back to the queue."""
        calls = [work.calls[index] for index in chunk]
        try:
            # One by one: what two calls share here they do not share there; none sees another's changes.
            each = [(call[0], pickle.dumps(call[1:], _PROTOCOL)) for call in calls]
            payload = pickle.dumps(each, _PROTOCOL)
        except Exception as error:  # a context that cannot be pickled, in whatever way
            self._undone(chunk, work, -1, failure_of(error))
            return
        clock = _Clock(worker, [self._limits_s[call[0]] for call in calls])
        num_done = 0
        try:
            sent = await worker.send(payload)
            while sent and num_done < len(chunk) and (message := await worker.receive()) is not None:
                if isinstance(news := pickle.loads(message), Failure):
                    self._undone(chunk, work, -1, news)
                    return
                for outcome, seconds in news:
                    work.outcomes[chunk[num_done]] = outcome
                    work.seconds[chunk[num_done]] = seconds
                    which = calls[num_done][0]
                    self._mean_s[which] = 0.8 * self._mean_s.get(which, seconds) + 0.2 * seconds
                    num_done += 1
        finally:
            clock.stop()
        if num_done:
            work.num_not_started = 0
        left, present = chunk[num_done:], worker.present_call()[0]
        if present != LEAVING and not left:
            return
        cause = Failure(worker.death_message())
        worker.kill()  # its connection ends a moment before the process does: it must not be given more
        if present in (LEAVING, STARTING):
            work.queue.extendleft(reversed(left))
        if present == STARTING:
            self._not_started(work, left[0], worker, cause)
        elif present != LEAVING:
            self._undone(left, work, present - num_done, cause)

    def _not_started(self, work: _Work, index: int, worker: RewardProcess, cause: Failure) -> None:
        """Start another, unless it would be in vain: `index` is of the call that was to be the next."""
        work.num_not_started += 1
        if worker.overdue_s is not None:
            what = f"a process for it did not start within {worker.overdue_s:g} s"
        elif work.num_not_started < START_ATTEMPTS:
            return
        else:
            what = f"processes for it ended {START_ATTEMPTS} times while starting: {cause.reason}"
        name = self._sources[work.calls[index][0]].name
        work.broken = f"reward {name!r}: {what}; see what it does when it is imported, and scoring.memory_gib"

    def _undone(self, left: list[int], work: _Work, guilty: int, cause: Failure) -> None:
        """Blame one call, if it is known or the only one; try the others again, alone if it is not known."""
        if guilty < 0 and len(left) == 1:
            guilty = 0
        if guilty < 0:
            work.alone.update(left)
        else:
            work.outcomes[left.pop(guilty)] = cause
        work.queue.extendleft(reversed(left))


class _Work:
    """The calls of one run: those to do, and the outcomes so far.

    Attributes:
        seconds: of each call that was answered.
        alone: calls to be given out by themselves: one of them ended a worker.
        num_not_started: workers in a row that ended before their first call.
        broken: why the run ends.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.queue = deque(range(len(calls)))
        self.outcomes: dict[int, Outcome] = {}
        self.seconds: dict[int, float] = {}
        self.alone: set[int] = set()
        self.num_not_started = 0
        self.broken: str | None = None


class _Clock:
    """Ends a worker whose present call is over its limit."""

    def __init__(self, worker: RewardProcess, limits_s: Sequence[float]) -> None:
        self._worker, self._limits_s = worker, limits_s
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(min(limits_s), self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        index, begin = self._worker.present_call()
        limit_s = self._limits_s[index] if index >= 0 else START_LIMIT_S
        left_s = begin + limit_s - time.monotonic()
        if left_s > 0:
            self._timer = self._loop.call_later(max(min(left_s, min(self._limits_s)), 0.01), self._look)
        elif self._worker.present_call() == (index, begin):  # and not on to the next one meanwhile
            if self._worker.alive:  # else it is dead, and what it started holds the connection open
                self._worker.overdue_s = limit_s
            self._worker.end()
