"""Answers to questions: the right one, the score of a text, and a random guess.

An answer is judged by the rewards in `vlrl.rewards`; None instead of a score says that the text is not of the
answer's kind at all, such as a word where a number is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from vlrl.parsing.extract import MAX_CHARS
from vlrl.parsing.text import normalize
from vlrl.parsing.units import read_quantity
from vlrl.registry import resolve


def score(reward: str, text: str, answer: Any, **options: Any) -> float:
    """What one of the registered rewards gives a whole text."""
    return float(_reward(reward)(text, answer, part="whole", **options))


@cache
def _reward(name: str) -> Callable[..., float]:
    found: Callable[..., float] = resolve("rewards", name)
    return found


class TaskAnswer(Protocol):
    """The right answer of one question."""

    @property
    def text(self) -> str:
        """Answer as it is to be written; `grade` gives it 1."""
        ...

    def grade(self, text: str) -> float | None:
        """Score in [0, 1] of what stands between the answer tags; None if it is not of this kind."""
        ...

    def guess(self, rng: np.random.Generator) -> str:
        """An answer of the right kind, drawn from what the question's words alone allow."""
        ...


@dataclass(frozen=True, slots=True)
class Number:
    """A number; reward `numeric`.

    Attributes:
        value: the right one.
        low, high: guesses are drawn from low to high, both included, in steps of `grain`.
        absolute: an answer so far off is still right.
        grain: of guesses, and of the right answer as it is written: 1 for whole numbers, 0.1 for tenths.
        unit: which may be written with it, one of `vlrl.parsing.units`.
    """

    value: float
    low: float
    high: float
    absolute: float = 0.0
    grain: float = 1
    unit: str = ""

    @property
    def text(self) -> str:
        """The number without a trailing .0."""
        return f"{round(self.value, 6):g}"

    def grade(self, text: str) -> float | None:
        """1 within `absolute`, else 0."""
        if len(text) > MAX_CHARS or read_quantity(text) is None:
            return None
        return score("numeric", text, self.text, absolute=self.absolute, unit=self.unit)

    def guess(self, rng: np.random.Generator) -> str:
        """Evenly from low to high."""
        steps = round((self.high - self.low) / self.grain)
        return f"{round(self.low + self.grain * int(rng.integers(0, steps + 1)), 6):g}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several words that the question names or its form implies; reward `answer_normalized`.

    Attributes:
        text: the right one.
        choices: all of them.
    """

    text: str
    choices: Sequence[str]

    def __post_init__(self) -> None:
        options = [normalize(choice) for choice in self.choices]
        if len(set(options)) < len(options) or normalize(self.text) not in options:
            raise ValueError(f"the answer {self.text!r} must be one of different choices {self.choices!r}")

    def grade(self, text: str) -> float | None:
        """1 for the right word; case, articles and punctuation do not count."""
        if len(text) > MAX_CHARS or normalize(text) not in map(normalize, self.choices):
            return None
        return score("answer_normalized", text, self.text)

    def guess(self, rng: np.random.Generator) -> str:
        """Evenly among the choices."""
        return self.choices[int(rng.integers(len(self.choices)))]


def yes_or_no(right: bool) -> Choice:
    """The answer of a question that is answered yes or no."""
    return Choice("yes" if right else "no", ("yes", "no"))
