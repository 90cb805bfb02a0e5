"""Calls of one reward on completions, as training makes them, with limits; and how long they take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from vlrl.errors import ConfigError
from vlrl.options import ScoringConfig
from vlrl.rewards.scoring.compose import context_of
from vlrl.rewards.scoring.execute import Executor, Request
from vlrl.rewards.scoring.functions import RewardFunction, Value
from vlrl.rewards.scoring.worker import perform
from vlrl.session import Session
from vlrl.trouble import Trouble
from vlrl.types import Generation, Prompt, Sample, Trajectory, VersionSpan

BYTES_PER_TOKEN = 4
"""Without a tokenizer a completion has about so many; only rewards that count tokens see it."""

_TOKEN_NAMES = frozenset({"trajectory", "turns", "completion_ids", "num_tokens"})


class Calls:
    """A pool that scores (sample, completion) pairs; a fresh one is a fresh process."""

    def __init__(self, function: RewardFunction, timeout_s: float) -> None:
        self.function = function
        scoring = ScoringConfig(timeout_s=timeout_s, async_timeout_s=max(timeout_s, 60.0))
        self._executor = Executor([function], scoring)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        """As a context, it ends its processes."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes."""
        self._executor.close()
        self._runner.close()

    def score(self, pairs: Sequence[tuple[Sample, str]]) -> list[Value | Trouble]:
        """One result a pair, in their order.

        Raises:
            ConfigError: if the reward refuses its options.
        """
        requests = [request(self.function, sample, text) for sample, text in pairs]
        results = self._runner.run(self._executor.run(requests))
        for result in results:
            if isinstance(result, Trouble) and result.reason.startswith("ConfigError: "):
                name = self.function.source.name
                raise ConfigError(f"reward {name!r}: {result.reason.removeprefix('ConfigError: ')}")
        return results


def request(function: RewardFunction, sample: Sample, text: str) -> Request:
    """One call's arguments."""
    context = context_of(_trajectory(function, sample, text), 0, function)
    return Request(0, text, sample.answer, context)


def time_calls(
    function: RewardFunction, pairs: Sequence[tuple[Sample, str]], rounds: int
) -> list[tuple[Value | Trouble, float]]:
    """Call the reward here, on one pair at a time: (result, seconds) of every call, in the order of pairs."""
    requests = [request(function, sample, text) for sample, text in pairs]
    timed: list[tuple[Value | Trouble, float]] = []
    with asyncio.Runner() as runner:
        call = _caller(function, runner)
        for one in requests[:1]:
            call(one)  # what is imported or compiled at first is not the reward's speed
        for _ in range(rounds):
            for one in requests:
                begin = time.perf_counter()
                result = call(one)
                timed.append((result, time.perf_counter() - begin))
    return timed


def require_fields(function: RewardFunction, samples: Sequence[Sample]) -> None:
    """Raise ConfigError if a sample has not the metadata that the reward cannot do without."""
    for sample in samples:
        for name in sorted(function.required - sample.metadata.keys()):
            raise ConfigError(
                f"reward {function.source.name!r} needs {name!r}, which sample {sample.id!r} has not: give "
                f"data that has it with --data, or a value with --option {name}=…"
            )


def _caller(function: RewardFunction, runner: asyncio.Runner) -> Callable[[Request], Value | Trouble]:
    batched = function.declared.batched

    def arguments(one: Request) -> tuple[Any, Any, Any]:
        if not batched:
            return one.completion, one.answer, one.context
        return [one.completion], [one.answer], {name: [value] for name, value in one.context.items()}

    def call(one: Request) -> Value | Trouble:
        outcome = perform(function, *arguments(one))
        return outcome if isinstance(outcome, Trouble) else outcome[0]

    async def awaited(one: Request) -> Any:
        return await function.invoke(*arguments(one))

    def waited(one: Request) -> Value | Trouble:
        with suppress(Exception):  # a stranger's; what it raises was seen in the pool already
            return function.results(runner.run(awaited(one)), 1 if batched else None)[0]
        return Trouble("failed")

    return waited if function.is_async else call


def _trajectory(function: RewardFunction, sample: Sample, text: str) -> Trajectory:
    """An episode that ended in this completion; its tokens are made up, and only if they are asked for."""
    count = 0
    if function.wanted & _TOKEN_NAMES:
        count = -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
        one = np.zeros(1, np.int64)
        sample = replace(sample, prompt=Prompt(one, one, np.zeros((3, 1), np.int64), 1))
    session = Session(sample, group_index=0)
    spans = (VersionSpan(0, 0, count),)
    ids, logprobs = np.zeros(count, np.int64), np.zeros(count, np.float32)
    session.append_action(Generation(ids, logprobs, spans, finished=True))
    return session.trajectory(text, "ok", 0.0)
