"""What rewards say of an answer: each one's value with its parts, and why if it says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from vlrl.check.rewards.calls import Calls
from vlrl.errors import ConfigError
from vlrl.foreign.failure import Failure
from vlrl.scoring.functions import RewardFunction
from vlrl.types import Prompt, Sample

NO_TOKENS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one reward says.

    Attributes:
        reward: its name.
        value: None if it could not score.
        parts: name → number.
        explanation: why, or what went wrong.
    """

    reward: str
    value: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    explanation: str = ""

    def line(self) -> str:
        """A judgement for people."""
        value = "not scored" if self.value is None else f"{self.value:.3g}"
        only = list(self.parts.values()) == [self.value]
        parts = "" if only else ", ".join(f"{name} {number:.3g}" for name, number in self.parts.items())
        why = f"  {self.explanation}" if self.explanation else ""
        return f"{self.reward}: {value}{f' ({parts})' if parts else ''}{why}"


class RewardView:
    """Rewards beside a conversation; each has processes of its own, which closing ends."""

    def __init__(self, functions: Sequence[RewardFunction], timeout_s: float = 30.0) -> None:
        """Nothing is started before there is an answer to score.

        Args:
            functions: the rewards.
            timeout_s: of one call.

        Raises:
            ConfigError: for a reward that needs metadata of a row.
        """
        for function in functions:
            if missing := sorted(function.required):
                raise ConfigError(
                    f"reward {function.source.name!r} needs {', '.join(missing)} of a row, which a "
                    "conversation does not have; give it as an option: --option NAME=…"
                )
        self._stack = ExitStack()
        self._calls = [self._stack.enter_context(Calls(function, timeout_s)) for function in functions]

    def judge(self, messages: Sequence[Mapping[str, Any]], answer: str, reference: Any) -> list[Judgement]:
        """What each reward says of an answer.

        Args:
            messages: before it, images as {"type": "image"}.
            answer: the model's text.
            reference: what is right, for rewards that compare; None if that is not known.
        """
        prompt = Prompt(NO_TOKENS, NO_TOKENS, np.zeros((3, 0), np.int64), 0)
        sample = Sample("chat", tuple(messages), (), prompt, answer=reference)
        found = []
        for calls in self._calls:
            name = calls.function.source.name
            (result,) = calls.score([(sample, answer)])
            if isinstance(result, Failure):
                found.append(Judgement(name, None, {}, result.reason))
            else:
                found.append(Judgement(name, result.number, result.parts, result.explanation))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stack.close()


def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages of OpenAI's format as a sample has them: no pixels, images as {"type": "image"}."""
    return [
        {
            **message,
            "content": [part if part["type"] == "text" else {"type": "image"} for part in message["content"]]
            if isinstance(message["content"], list)
            else message["content"],
        }
        for message in messages
    ]
