"""Calls of one reward on completions, with training's arguments, in processes of their own under watch."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from vlrl.check.rewards.watched import read_notes
from vlrl.config.options import ScoringConfig
from vlrl.errors import ConfigError
from vlrl.foreign.failure import Failure
from vlrl.rollout.session import Session
from vlrl.scoring.context import context_of
from vlrl.scoring.execute import Executor, ScoringRequest
from vlrl.scoring.functions import RewardFunction, Value
from vlrl.scoring.process import Watch
from vlrl.types import Generation, Prompt, Sample, Trajectory, VersionSpan

BYTES_PER_TOKEN = 4
"""Without a tokenizer a completion has about so many; only rewards that count tokens see it."""

_TOKEN_NAMES = frozenset({"trajectory", "turns", "completion_ids", "num_tokens"})


class Calls:
    """Processes that score (sample, completion) pairs under watch; fresh ones for every `Calls`.

    Attributes:
        seconds: of each pair of the last `score`.
    """

    def __init__(self, function: RewardFunction, timeout_s: float, hash_seed: int = 0) -> None:
        """Nothing is started before there is something to score.

        Args:
            function: the reward.
            timeout_s: of one call, whatever kind the reward is of.
            hash_seed: of the processes: sets come in another order under another one.
        """
        self.function = function
        self.seconds: list[float] = []
        handle, path = tempfile.mkstemp(prefix="vlrl-reward-", suffix=".jsonl")
        os.close(handle)
        self._notes = Path(path)
        environment = {"PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"}
        if function.declared.gpu:
            environment["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
        watch = Watch("vlrl.check.rewards.watched", (path,), environment)
        workers = 1 if function.declared.gpu else None
        scoring = ScoringConfig(timeout_s=timeout_s, num_workers=workers)
        self._executor = Executor([function], scoring, watch=watch)
        self._runner = asyncio.Runner()

    @property
    def notes(self) -> dict[str, list[str]]:
        """What the calls did beside returning, see `vlrl.check.rewards.watched`."""
        return read_notes(self._notes)

    def __enter__(self) -> Self:
        """Leaving the context ends its processes."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes."""
        self._executor.close()
        self._runner.close()
        self._notes.unlink(missing_ok=True)

    def score(self, pairs: Sequence[tuple[Sample, str]]) -> list[Value | Failure]:
        """One result a pair, in their order.

        Raises:
            ConfigError: if the reward refuses its options.
        """
        requests = [request(self.function, sample, text) for sample, text in pairs]
        results = self._runner.run(self._executor.run(requests))
        self.seconds = self._executor.seconds
        for result in results:
            if isinstance(result, Failure) and result.reason.startswith("ConfigError: "):
                name = self.function.source.name
                raise ConfigError(f"reward {name!r}: {result.reason.removeprefix('ConfigError: ')}")
        return results


def request(function: RewardFunction, sample: Sample, text: str) -> ScoringRequest:
    """One call's arguments."""
    context = context_of(_trajectory(function, sample, text), 0, function)
    return ScoringRequest(0, text, sample.answer, context)


def require_fields(function: RewardFunction, samples: Sequence[Sample]) -> None:
    """Raise ConfigError if a sample has not the metadata that the reward cannot do without."""
    for sample in samples:
        for name in sorted(function.required - sample.metadata.keys()):
            raise ConfigError(
                f"reward {function.source.name!r} needs {name!r}, which sample {sample.id!r} has not: give "
                f"data that has it with --data, or a value with --option {name}=…"
            )


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
