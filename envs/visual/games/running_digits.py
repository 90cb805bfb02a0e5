"""One handwritten digit a turn, and each time the sum of all so far, or all of them in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vlrl.envs.action_text import last_action
from vlrl.envs.visual.episodes import EpisodeEnv
from vlrl.envs.visual.questions.digit_sum import enlarged_scan, scans_of
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult
from vlrl.types import ByteArray

EXAMPLE = "<action>7</action>"
GOALS = {"sum": "Give the sum.", "digits": "Give all digits."}
_WHOLE = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Column:
    """What is to be added: digits, and their images [side, side, 3] uint8."""

    digits: tuple[int, ...]
    images: tuple[ByteArray, ...]


class RunningDigits(EpisodeEnv[Column, int]):
    """Two to six digits by level, real scans, one shown a turn.

    The state is how many answers were given. Reward 1 if the last answer is right, 0 otherwise; with partial,
    each right answer of n is worth 1/n. Answers before the last need not be right to go on. A text that is no
    number counts as a wrong one. A guess among all possible sums is right once in 19 times at level 1, in 55
    at level 5; one among all pairs of digits once in 100.
    """

    name = "visual/running_digits"

    def __init__(
        self,
        level: int | Sequence[int] = 1,
        say: Literal["sum", "digits"] = "sum",
        scans: Literal["train", "heldout"] = "train",
        partial: bool = False,
        max_shift: int = 0,
        **options: Any,
    ) -> None:
        """Choose the digits.

        Args:
            level: number of digits less one, or [fewest, most].
            say: what is asked for: the sum of the digits so far, or all of them in order.
            scans: which scans digits are drawn from; the two share none.
            partial: pay for every right answer, not only for the last.
            max_shift: each scan is moved by up to this many pixels along both axes.
            options: of every episode; see EpisodeEnv.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, **options)
        if say not in GOALS or scans not in ("train", "heldout") or not isinstance(partial, bool):
            raise ConfigError(
                f"env {self.name}: options say={say!r}, scans={scans!r}, partial={partial!r}; say is sum or "
                "digits, scans train or heldout, partial true or false"
            )
        self.check_count("max_shift", max_shift, 0)
        self.say, self.scans, self.partial, self.max_shift = say, scans, partial, max_shift
        self.goal = GOALS[say]
        asked = "the sum of all digits so far" if say == "sum" else "all digits so far, in order"
        self.system_prompt = (
            f"You see handwritten digits, one a turn. Each time give {asked}, such as {EXAMPLE}. "
            "You may think first."
        )

    def make(self, rng: np.random.Generator, level: int) -> Column:
        """Draw digits and where they lie."""
        images, labels = scans_of(self.scans)
        chosen = rng.integers(0, len(labels), level + 1)
        shifts = rng.integers(-self.max_shift, self.max_shift + 1, (level + 1, 2)).tolist()
        return Column(
            tuple(int(labels[i]) for i in chosen),
            tuple(
                enlarged_scan(images[i], self.image_size, *shift)
                for i, shift in zip(chosen, shifts, strict=True)
            ),
        )

    def first(self, world: Column) -> int:
        """No answer was given."""
        return 0

    def show(self) -> Observation:
        """The next digit."""
        summary = f"So far it is {self._answer(self.state)}." if self.state else ""
        return Observation(self.goal, [self.world.images[self.state]], summary=summary)

    def step(self, action: str) -> StepResult:
        """Take an answer and show the next digit; info has success, invalid, state, level and num_steps."""
        self.check_open()
        self._num_steps += 1
        said = last_action(action)
        invalid = said is None or not _WHOLE.fullmatch(said)
        is_right = not invalid and self._is_right(said or "")
        self._state += 1
        num_digits = len(self.world.digits)
        self._ended = self.state == num_digits
        reward = is_right / num_digits if self.partial else float(is_right and self._ended)
        cut = not self._ended and self.max_steps is not None and self._num_steps >= self.max_steps
        reward -= self.invalid_penalty if invalid else self.step_penalty
        if self._ended:
            observation = Observation("Right." if is_right else f"No: {self._answer(num_digits)}.")
        else:
            observation = self.show()
            if invalid:
                text = f"That was no number; give one, such as {EXAMPLE}. {self.goal}"
                observation = Observation(text, observation.images, summary=observation.summary)
        info = {
            "success": is_right and self._ended,
            "invalid": invalid,
            "state": str(self.state),
            "level": self._place[0],
            "num_steps": self._num_steps,
        }
        return StepResult(observation, reward, self._ended, cut, info)

    def oracle(self) -> str:
        """The right answer; of a sum, also how it comes about."""
        answer = self._answer(self.state + 1)
        if self.say == "digits":
            return f"<action>{answer}</action>"
        digit = self.world.digits[self.state]
        return f"<think>{int(answer) - digit}+{digit}</think><action>{answer}</action>"

    def random_action(self, rng: np.random.Generator) -> str:
        """An answer that as many digits can have."""
        num_digits = self.state + 1
        if self.say == "sum":
            return f"<action>{rng.integers(0, 9 * num_digits + 1)}</action>"
        return f"<action>{''.join(str(digit) for digit in rng.integers(0, 10, num_digits))}</action>"

    def _answer(self, num_digits: int) -> str:
        """What is right after so many digits."""
        digits = self.world.digits[:num_digits]
        return str(sum(digits)) if self.say == "sum" else "".join(map(str, digits))

    def _is_right(self, said: str) -> bool:
        answer = self._answer(self.state + 1)
        return said == answer if self.say == "digits" else int(said) == int(answer)
