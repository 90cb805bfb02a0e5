"""What benchmarks/async.py plays: images, and steps that wait by a distribution with a long tail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np

from vlrl.protocols import Observation, StepResult

SIDE = 56
"""Pixels of an image's side: four tokens."""


def waits_of(seed: int, num_steps: int, median_s: float, sigma: float, most_s: float) -> list[float]:
    """Seconds that each step of the episode waits: log-normal, cut at most_s."""
    drawn = np.random.default_rng([seed, 1]).lognormal(0.0, sigma, num_steps)
    return [float(wait_s) for wait_s in np.minimum(median_s * drawn, most_s)]


class Waiting:
    """An environment like one behind a network: it answers late, and without using the processor.

    The episodes of a group wait alike, as their seed is the sample's.
    """

    system_prompt = ""
    tools: tuple[Mapping[str, Any], ...] = ()

    def __init__(self, num_steps: int, median_s: float, sigma: float, most_s: float) -> None:
        self._options = (num_steps, median_s, sigma, most_s)

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Return at once: the image is part of the row."""
        self._waits = waits_of(seed, *self._options)
        self._images = np.random.default_rng([seed, 0])
        self._num_done, self._waited_s = 0, 0.0
        return self._look()

    async def step(self, action: str) -> StepResult:
        """Late; info has the seconds waited in the episode so far."""
        wait_s = self._waits[self._num_done]
        await asyncio.sleep(wait_s)
        self._num_done += 1
        self._waited_s += wait_s
        ended = self._num_done == len(self._waits)
        return StepResult(self._look(), 0.0, ended, False, {"waited_s": self._waited_s})

    def close(self) -> None:
        """Nothing to free."""

    def _look(self) -> Observation:
        image = self._images.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        return Observation("What now?", [image])


def parity(completion: str, answer: Any) -> float:
    """A reward that a random model gets every other time, so that no group is skipped for equal rewards."""
    return float(sum(map(ord, completion)) % 2)
