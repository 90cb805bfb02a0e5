"""Calls of many rewards on many samples: in the pool, or in the driver for what is async or GPU-bound."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from vlrl.config.options import ScoringConfig
from vlrl.foreign.failure import Failure, failure_of
from vlrl.scoring.functions import RewardFunction, Value
from vlrl.scoring.isolated import isolated
from vlrl.scoring.pool import Pool
from vlrl.scoring.process import Watch
from vlrl.scoring.worker import Outcome, perform

REWARD_ATTEMPTS = 2
"""A failed call is tried once more, by itself (law 7)."""

Jobs: TypeAlias = list[list[int]]
"""The requests of each call of one reward."""


@dataclass(frozen=True, slots=True)
class ScoringRequest:
    """One sample to be scored by one reward.

    Attributes:
        reward: its number.
        completion: the model's text.
        answer: the sample's.
        context: by name, what the reward wants of the sample; never more (it may be pickled).
        group: number of the group that the sample is scored in; None is a group of its own.
    """

    reward: int
    completion: str
    answer: Any
    context: Mapping[str, Any]
    group: int | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """One call of `Executor.run`; a stream of episodes has several at once.

    Attributes:
        requests: [n].
        results: of each request's number, those that are known.
        seconds: [n], see `Executor.seconds`.
    """

    requests: Sequence[ScoringRequest]
    results: dict[int, Value | Failure]
    seconds: list[float]


class Executor:
    """Runs requests with a time limit, a memory limit and a second attempt.

    Attributes:
        seconds: of each request of the run that ended last, where it ran in the pool; its share of a batch.
    """

    def __init__(
        self,
        functions: Sequence[RewardFunction],
        scoring: ScoringConfig,
        *,
        limits_s: Sequence[float | None] | None = None,
        inline: bool = False,
        watch: Watch | None = None,
    ) -> None:
        """Nothing is started before there is a request.

        Args:
            functions: the rewards by number.
            scoring: the limits.
            limits_s: of each reward, instead of scoring's; None is scoring's.
            inline: run all in this process, without limits: for callers that are killed from outside.
            watch: run all in such workers, what is async or GPU-bound too, under the pool's time limit.
        """
        self._functions, self._inline, self._watched = list(functions), inline, watch is not None
        self.seconds: list[float] = []
        given = limits_s or [None] * len(self._functions)
        self._limits_s = [
            limit or (scoring.async_timeout_s if self._runs_here(function) else scoring.timeout_s)
            for function, limit in zip(self._functions, given, strict=True)
        ]
        self._pool = Pool(
            [function.source for function in self._functions],
            self._limits_s,
            num_workers=scoring.num_workers or len(os.sched_getaffinity(0)),
            memory_bytes=int(scoring.memory_gib * 2**30),
            watch=watch,
        )

    async def run(self, requests: Sequence[ScoringRequest]) -> list[Value | Failure]:
        """Results in the order of the requests; they depend on nothing but the requests."""
        run = _Run(requests, {}, [0.0] * len(requests))
        pending = list(range(len(requests)))
        for attempt in range(REWARD_ATTEMPTS):
            await self._attempt(run, pending, alone=attempt > 0)
            pending = [index for index in pending if isinstance(run.results[index], Failure)]
            if not pending:
                break
        self.seconds = run.seconds
        return [run.results[index] for index in range(len(requests))]

    def close(self) -> None:
        """End the pool's processes."""
        self._pool.close()

    async def _attempt(self, run: _Run, pending: Sequence[int], *, alone: bool) -> None:
        by_reward: dict[int, list[int]] = defaultdict(list)
        for index in pending:
            by_reward[run.requests[index].reward].append(index)
        pooled: list[tuple[int, list[int]]] = []
        running = []
        for which, indices in by_reward.items():
            jobs = self._jobs(which, indices, run.requests, alone=alone)
            if self._runs_here(self._functions[which]):
                running.append(self._in_driver(which, jobs, run))
            else:
                pooled += [(which, job) for job in jobs]
        if pooled:
            running.append(self._in_pool(pooled, run))
        await asyncio.gather(*running)

    def _runs_here(self, function: RewardFunction) -> bool:
        return function.in_driver and not self._watched

    def _jobs(
        self, which: int, indices: list[int], requests: Sequence[ScoringRequest], *, alone: bool
    ) -> Jobs:
        """The calls that score some requests of a reward; a group is scored whole, at a second attempt."""
        declared = self._functions[which].declared
        if not declared.group:
            size = declared.batch_size if declared.batched and not alone else 1
            return [indices[start : start + size] for start in range(0, len(indices), size)]
        members: dict[Any, list[int]] = defaultdict(list)
        for index, request in enumerate(requests):
            if request.reward == which:
                members[(index,) if request.group is None else request.group].append(index)
        pending = set(indices)
        return [group for group in members.values() if not pending.isdisjoint(group)]

    async def _in_pool(self, jobs: Sequence[tuple[int, list[int]]], run: _Run) -> None:
        calls = [(which, *self._arguments(which, job, run.requests)) for which, job in jobs]
        if self._inline:
            done = [(perform(self._functions[which], *arguments), 0.0) for which, *arguments in calls]
        else:
            done = await self._pool.run(calls)
        for (_, job), (outcome, seconds) in zip(jobs, done, strict=True):
            _note(run.results, job, outcome)
            for index in job:
                run.seconds[index] = seconds / len(job)

    async def _in_driver(self, which: int, jobs: Jobs, run: _Run) -> None:
        """Async calls all at once; of those that keep a GPU busy, one after the other."""

        async def one(job: list[int]) -> None:
            outcome = await self._call(which, *self._arguments(which, job, run.requests))
            _note(run.results, job, outcome)

        if self._functions[which].is_async:
            await asyncio.gather(*(one(job) for job in jobs))
        else:
            for job in jobs:
                await one(job)

    async def _call(self, which: int, completion: Any, answer: Any, context: Mapping[str, Any]) -> Outcome:
        function, limit_s = self._functions[which], self._limits_s[which]
        try:
            async with asyncio.timeout(limit_s) as scope:
                if not function.is_async:
                    return await _in_thread(function, completion, answer, context)
                returned = await function.invoke(completion, answer, context)
                return function.results(returned, len(completion) if function.declared.batched else None)
        except Exception as error:  # a stranger's code: whatever it raises is a failure of this sample
            return Failure(f"took longer than {limit_s:g} s") if scope.expired() else failure_of(error)

    def _arguments(
        self, which: int, job: list[int], requests: Sequence[ScoringRequest]
    ) -> tuple[Any, Any, Mapping[str, Any]]:
        """One call's arguments: single values, or lists for a batched reward; each sample has its own."""
        chosen = [requests[index] for index in job]
        if self._inline or self._functions[which].in_driver or len(job) > 1:  # else pickling copies them
            chosen = [replace(r, answer=isolated(r.answer), context=isolated(r.context)) for r in chosen]
        if not self._functions[which].declared.batched:
            return chosen[0].completion, chosen[0].answer, chosen[0].context
        names = dict.fromkeys(name for request in chosen for name in request.context)
        context = {name: [request.context.get(name) for request in chosen] for name in names}
        return [r.completion for r in chosen], [r.answer for r in chosen], context


def _note(results: dict[int, Value | Failure], job: Sequence[int], outcome: Outcome) -> None:
    """Write down the results of one call; of a group that is scored again, those that had failed."""
    for place, index in enumerate(job):
        if index not in results or isinstance(results[index], Failure):
            results[index] = outcome if isinstance(outcome, Failure) else outcome[place]


async def _in_thread(
    function: RewardFunction, completion: Any, answer: Any, context: Mapping[str, Any]
) -> Outcome:
    """A call in a thread of its own; one that hangs is left behind and does not keep the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Outcome] = loop.create_future()

    def finish(outcome: Outcome) -> None:
        if not done.done():
            done.set_result(outcome)

    def work() -> None:
        outcome = perform(function, completion, answer, context)
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, outcome)

    threading.Thread(target=work, daemon=True, name=f"reward {function.label}").start()
    return await done
