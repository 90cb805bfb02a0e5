"""An environment: one disc of a board has another colour, and it is to be clicked.

Check it, play it, train on it:

    vlrl env check examples/odd_one_out.py:OddOneOut
    vlrl env play examples/odd_one_out.py:OddOneOut
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from vlrl.envs.action_text import last_action
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult
from vlrl.seeds import derive_seed

CLICK = re.compile(r"(\d{1,5})\s*,\s*(\d{1,5})")
GROUND, CROSS = (250, 250, 247), (40, 40, 40)


class OddOneOut:
    """Find the disc of another colour on a board and click it; reward 1, chance is about 1/cells² a click.

    A click beside it leaves a cross and costs a try; the episode ends with a hit or the last try.
    """

    reward_range = (0.0, 1.0)
    system_prompt = (
        "One disc has another colour than the others. Click it: write <action>x, y</action>, in pixels of "
        "the image from its upper left corner."
    )

    def __init__(self, cells: int = 4, contrast: int = 60, tries: int = 3, image_size: int = 224) -> None:
        if not 2 <= cells <= 12:
            raise ConfigError(f"env odd_one_out: cells={cells} must be from 2 to 12")
        if not 1 <= contrast <= 100:
            raise ConfigError(f"env odd_one_out: contrast={contrast} must be from 1 to 100")
        self.cells, self.contrast, self.tries, self.image_size = cells, contrast, tries, image_size

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Draw a board; everything on it hangs on the seed alone."""
        if task:
            raise ConfigError(f"env odd_one_out: unknown task key {next(iter(task))!r}; it has none")
        rng = np.random.default_rng(derive_seed("odd_one_out", seed))
        self.odd = tuple(rng.integers(0, self.cells, 2).tolist())
        self.color = rng.integers(self.contrast, 256 - self.contrast, 3)
        self.shift = self.contrast * rng.choice([-1, 1], 3)
        self.misses: list[tuple[int, int]] = []
        self.seed = seed
        return Observation("Which one is it?", images=[self._image()])

    def step(self, action: str) -> StepResult:
        """Click; text that is not a click is answered, and costs nothing."""
        match = CLICK.fullmatch(last_action(action) or "")
        if match is None:
            return self._result(
                "That is no click. Write, for instance, <action>30, 112</action>.", invalid=True
            )
        x, y = int(match[1]), int(match[2])
        side = self.image_size / self.cells
        if (int(x // side), int(y // side)) == self.odd:
            return self._result("That is it.", reward=1.0)
        self.misses.append((x, y))
        return self._result("No, that is another one.")

    def oracle(self) -> str:
        """The middle of the odd disc."""
        side = self.image_size / self.cells
        return "<action>{}, {}</action>".format(*(int((place + 0.5) * side) for place in self.odd))

    def random_action(self, rng: np.random.Generator) -> str:
        """A click anywhere."""
        return "<action>{}, {}</action>".format(*rng.integers(0, self.image_size, 2))

    def snapshot(self) -> Any:
        """What changes in an episode."""
        return list(self.misses)

    def restore(self, state: Any) -> None:
        """Go back to a snapshot of this episode."""
        self.misses = list(state)

    def close(self) -> None:
        """There is nothing to free."""

    def _result(self, text: str, reward: float = 0.0, invalid: bool = False) -> StepResult:
        out_of_tries = len(self.misses) >= self.tries
        return StepResult(
            Observation(text, images=[self._image()]),
            reward,
            terminated=reward > 0 or out_of_tries,
            truncated=False,
            info={"success": reward > 0, "invalid": invalid, "state": f"{self.seed}/{self.misses}"},
        )

    def _image(self) -> Image.Image:
        image = Image.new("RGB", (self.image_size, self.image_size), GROUND)
        draw = ImageDraw.Draw(image)
        side = self.image_size / self.cells
        for column in range(self.cells):
            for row in range(self.cells):
                color = self.color + (self.shift if (column, row) == self.odd else 0)
                box = [
                    (column + 0.14) * side,
                    (row + 0.14) * side,
                    (column + 0.86) * side,
                    (row + 0.86) * side,
                ]
                draw.ellipse([round(edge) for edge in box], fill=tuple(color.tolist()))
        for x, y in self.misses:
            draw.line((x - 6, y - 6, x + 6, y + 6), fill=CROSS, width=3)
            draw.line((x - 6, y + 6, x + 6, y - 6), fill=CROSS, width=3)
        return image
