"""Single-step environments: an image or a video, a question, one answer.

An environment is a subclass of `QuestionEnv` with one method, `ask`; what is right, how a text is graded and
what a guess is are the answer's own (`vlrl.envs.visual.answers`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from vlrl.envs.visual.answers import TaskAnswer
from vlrl.envs.visual.base import GeneratedEnv
from vlrl.protocols import Observation, StepResult, Video

OPEN, CLOSE = "<answer>", "</answer>"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        text: the question, with the form of its answer.
        answer: the right one.
        images: [h, w, 3] uint8 each.
        videos: shown after the images.
        metadata: what is in the image, for tests and people; the policy never sees it.
    """

    text: str
    answer: TaskAnswer
    images: Sequence[Any] = ()
    videos: Sequence[Video] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


class QuestionEnv(GeneratedEnv, ABC):
    """Asks one question and ends with its answer: reward in [0, 1], 0 for a text that is none."""

    system_prompt: str = (
        "Look closely and answer the question. You may think first; "
        f"then end with {OPEN}your answer{CLOSE} and write nothing after it."
    )
    single_step: ClassVar[bool] = True
    reward_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    success_at: ClassVar[float] = 1.0
    """info["success"] is whether the reward reaches it."""

    _question: Question | None = None
    _place: tuple[int, int] = (0, 0)

    @abstractmethod
    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """Draw a question of this level; all that is random comes from `rng`."""

    @property
    def question(self) -> Question:
        """The one that waits for an answer.

        Raises:
            RuntimeError: before `reset` and after the answer.
        """
        if self._question is None:
            raise RuntimeError(f"env {self.name}: no question is open; call reset first")
        return self._question

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Ask.

        Args:
            task: {} or {"level": a level or [lowest, highest]}.
            seed: of everything that is drawn.

        Raises:
            ConfigError: for an unknown key or a level out of range.
        """
        rng, level = self.begin(task, seed)
        self._question, self._place = self.ask(rng, level), (level, seed)
        return Observation(self._question.text, self._question.images, self._question.videos)

    def step(self, action: str) -> StepResult:
        """Grade the answer and end; info has success, invalid, state and level."""
        question, (level, seed) = self.question, self._place
        said = last_answer(action)
        score = question.answer.grade(said) if said is not None else None
        self._question = None
        info = {
            "success": score is not None and score >= self.success_at,
            "invalid": score is None,
            "state": f"{self.name}/{level}/{seed}/answered",
            "level": level,
        }
        if said is None:
            reply = f"That is no answer: end with {OPEN}your answer{CLOSE}."
        elif score is None:
            reply = f"That is not of the form asked for, such as {question.answer.text}."
        else:
            reply = f"The answer is {question.answer.text}."
        return StepResult(Observation(reply), score or 0.0, terminated=True, truncated=False, info=info)

    def oracle(self) -> str:
        """The right answer."""
        return f"{OPEN}{self.question.answer.text}{CLOSE}"

    def random_action(self, rng: np.random.Generator) -> str:
        """A guess from the question's words alone."""
        return f"{OPEN}{self.question.answer.guess(rng)}{CLOSE}"

    def close(self) -> None:
        """Forget the question."""
        self._question = None


def last_answer(text: str) -> str | None:
    """What stands in the <answer> tag with which a text ends; None if it does not, or nothing stands there.

    Whatever comes before is thinking, other answers too. A tag of think or answer inside makes it none.
    """
    text = text.rstrip()
    begin = text.rfind(OPEN)
    if begin < 0 or not text.endswith(CLOSE):
        return None
    said = text[begin + len(OPEN) : -len(CLOSE)].strip()
    return said if said and not any(tag in said for tag in (CLOSE, "<think>", "</think>")) else None
