"""Two agents, a digit each: one tells the other what it sees, and the other answers for both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from vlrl.envs.action_text import last_action
from vlrl.envs.visual.base import GeneratedEnv
from vlrl.envs.visual.questions.digit_sum import enlarged_scan, scans_of
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult

GIVER, GUESSER = "giver", "guesser"
MESSAGE = re.compile(r"[0-9A-Za-z ]{1,16}")
"""What may be said; anything else is as good as silence."""


class TeamDigits(GeneratedEnv):
    """A giver sees one handwritten digit and says something; a guesser sees another, and gives both.

    The team is paid: both agents have reward 1 if the guesser's answer is the giver's digit and then its own,
    else 0; with partial, a half for each right digit. A message is up to 16 letters, digits and blanks;
    the guesser is shown it as it is, and "nothing" in place of any other text. A guess is right once in 100
    times.
    """

    name = "team/digits"
    num_levels = 1
    agents = (GIVER, GUESSER)
    system_prompts: Mapping[str, str] = {
        GIVER: "You see a digit that your partner does not see. Say it, such as <action>7</action>.",
        GUESSER: "Your partner says a digit and you see another. Give both, such as <action>74</action>.",
    }

    def __init__(
        self,
        scans: Literal["train", "heldout"] = "train",
        partial: bool = False,
        image_size: int = 112,
    ) -> None:
        """Choose the digits.

        Args:
            scans: which scans digits are drawn from; the two share none.
            partial: pay the team a half for each right digit of the answer.
            image_size: side of the images in pixels.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(1, image_size)
        if scans not in ("train", "heldout") or not isinstance(partial, bool):
            raise ConfigError(
                f"env {self.name}: options scans={scans!r}, partial={partial!r}; scans is train or heldout, "
                "partial true or false"
            )
        self.scans, self.partial = scans, partial
        self._to_act = ""

    def reset(self, task: Mapping[str, Any], seed: int) -> Mapping[str, Observation]:
        """Draw two digits and show the giver its own."""
        rng, _ = self.begin(task, seed)
        images, labels = scans_of(self.scans)
        chosen = rng.integers(0, len(labels), 2)
        self._digits = [int(labels[i]) for i in chosen]
        self._images = [enlarged_scan(images[i], self.image_size, 0, 0) for i in chosen]
        self._to_act = GIVER
        return {GIVER: Observation("Say it.", [self._images[0]])}

    def step(self, actions: Mapping[str, str]) -> Mapping[str, StepResult]:
        """Pass the giver's message on, or judge the guesser's answer; info has success and invalid."""
        said = last_action(actions[self._to_act])
        if self._to_act == GIVER:
            self._to_act = GUESSER
            self._is_silent = said is None or not MESSAGE.fullmatch(said)
            message = "nothing" if self._is_silent else said
            view = Observation(f"It says {message}. Give both.", [self._images[1]])
            return {GUESSER: StepResult(view, 0.0, False, False)}
        self._to_act = ""
        is_right = said == self._answer
        reward = self._paid(said or "")
        end = Observation("Right." if is_right else f"No: {self._answer}.")
        invalid = {GIVER: self._is_silent, GUESSER: said is None or not said.isdecimal()}
        return {
            agent: StepResult(end, reward, True, False, {"success": is_right, "invalid": invalid[agent]})
            for agent in self.agents
        }

    def close(self) -> None:
        """Nothing is held."""

    def oracle(self, agent: str) -> str:
        """The agent's digit, or both."""
        return f"<action>{self._digits[0] if agent == GIVER else self._answer}</action>"

    def random_action(self, agent: str, rng: np.random.Generator) -> str:
        """A digit, or two."""
        return f"<action>{''.join(map(str, rng.integers(0, 10, 1 if agent == GIVER else 2)))}</action>"

    def _paid(self, said: str) -> float:
        if not self.partial or len(said) != len(self._answer):
            return float(said == self._answer)
        return sum(each == right for each, right in zip(said, self._answer, strict=True)) / len(said)

    @property
    def _answer(self) -> str:
        return "".join(map(str, self._digits))
