"""A dry run of a source's rewards on one row: do they work, and does the reference beat an empty text?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from vlrl.check.data.records import Problem
from vlrl.config.options import RewardConfig
from vlrl.rollout.session import Session
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.scoring.functions import find_reward
from vlrl.types import Generation, IntArray, Sample, Trajectory, VersionSpan

ANSWER_FORMS = (
    "{}",
    "<think></think><answer>{}</answer>",
    "<think>\n\n</think>\n<answer>\n{}\n</answer>",
    "<answer>{}</answer>",
    "\\boxed{{{}}}",
)
"""How a row without a target may want its answer said; the form that the rewards like best counts."""


class RewardTrial:
    """The rewards of one source, called as training calls them."""

    def __init__(self, configs: Sequence[RewardConfig], runner: asyncio.Runner, encode: Any) -> None:
        """Prepare the trial.

        Args:
            configs: the source's rewards.
            runner: runs async rewards.
            encode: text → [num_tokens] int64 tokens of a completion.

        Raises:
            ConfigError: for a reward that does not exist or takes no such option.
        """
        # A judge asks a server, for money: it is looked up, but not asked about every row.
        free = [c for c in configs if not find_reward(c.name, c.options, c.adapter).is_async]
        self._reward = ComposedReward(free, inline=True) if free else None
        self._required = {config.name: _required(config) for config in configs}
        self._runner, self._encode = runner, encode

    def problems(self, sample: Sample) -> Iterator[Problem]:
        """What is wrong with the rewards of a sample."""
        missing = False
        for name, fields in self._required.items():
            for field in sorted(fields - sample.metadata.keys()):
                missing = True
                text = f"reward {name!r} needs the field {field!r}, which the row has not"
                yield Problem("reward misses a field", text)
        if missing or self._reward is None:
            return
        empty = self._total(self._reward, sample, "")
        if isinstance(empty, str):
            yield Problem("reward fails", f"on an empty completion: {empty}")
        references = references_of(sample)
        tried = [self._total(self._reward, sample, text) for text in references]
        good = [total for total in tried if not isinstance(total, str)]
        if tried and not good:
            yield Problem("reward fails", f"on the reference {_short(references[0])}: {tried[0]}")
        elif good and not isinstance(empty, str) and max(good) <= empty:
            text = (
                f"the reference {_short(references[0])} scores {max(good):g}, an empty completion {empty:g}: "
                "check the answer's form, or the reward"
            )
            yield Problem("reference not rewarded", text)

    def _total(self, reward: ComposedReward, sample: Sample, completion: str) -> float | str:
        """What a completion scores, or why it could not be scored."""
        try:
            return self._runner.run(reward.score(said_trajectory(sample, completion, self._encode))).total
        except RewardFailure as failure:
            return str(failure)


def said_trajectory(sample: Sample, completion: str, encode: Callable[[str], IntArray]) -> Trajectory:
    """What a reward is given for a completion that nobody sampled; `encode` makes its [num_tokens] tokens."""
    session = Session(sample, group_index=0)
    ids = encode(completion)
    spans = (VersionSpan(0, 0, len(ids)),)
    session.append_action(Generation(ids, np.zeros(len(ids), np.float32), spans, finished=True))
    return session.trajectory(completion, "ok", 0.0)


def encode_bytes(text: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A stand-in for a tokenizer, where there is no model: one token a byte."""
    return np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8).astype(np.int64)


def _required(config: RewardConfig) -> set[str]:
    """Keywords that a reward cannot do without and that its options do not give."""
    return set(find_reward(config.name, config.options, config.adapter).required)


def references_of(sample: Sample) -> list[str]:
    """Completions that ought to be right, the likeliest first; none for a row that has nothing to compare."""
    if sample.target is not None:
        return [sample.target]
    if sample.answer is None:
        return []
    answers = [sample.answer]
    if isinstance(sample.answer, list) and sample.answer and isinstance(sample.answer[0], str):
        answers.insert(0, sample.answer[0])  # of several references one is said
    return [form.format(answer) for answer in answers for form in ANSWER_FORMS]


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")
