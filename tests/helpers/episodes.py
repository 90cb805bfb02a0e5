"""Environments for tests of the loop: text alone, and as slow or broken as their task says."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.protocols import Observation, StepResult


@dataclass
class State:
    """A snapshot of a class of this file's own."""

    left: int
    num_steps: int
    secret: Any


class Countdown:
    """Starts at task["start"], counts down at every "-"; success at 0. Anything else is not an action.

    task["fails"] = {step: what}: "raise", "hang", "exit", "nonsense", before that step's answer ("reset",
    "snapshot 2", "3", or "restored 3" if the episode did not begin at the reset); with task["once"] = a
    folder, only the first time that the episode gets there. With `secret` its snapshots cannot be pickled.
    """

    tools: tuple[Mapping[str, Any], ...] = ()

    def __init__(self, delay_s: float = 0.0, system_prompt: str = "", secret: bool = False) -> None:
        self.delay_s, self.system_prompt, self.secret = delay_s, system_prompt, secret

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        self.task, self.seed, self.left, self.num_steps = task, seed, int(task.get("start", 3)), 0
        self.restored = ""
        self._fail("reset")
        return Observation(f"{self.left}")

    def step(self, action: str) -> StepResult:
        self.num_steps += 1
        self._fail(f"{self.restored}{self.num_steps}")
        time.sleep(self.delay_s)
        self.left -= action == "-"
        info = {"success": self.left == 0, "invalid": action != "-", "left": self.left, "word": "ignored"}
        info["state"] = str(self.left)
        observation = Observation(f"{self.left}", summary=f"after {self.num_steps}: ")
        return StepResult(observation, float(self.left == 0), self.left == 0, False, info)

    def snapshot(self) -> State:
        self._fail(f"snapshot {self.num_steps}")
        return State(self.left, self.num_steps, (lambda: self) if self.secret else None)

    def restore(self, state: State) -> None:
        self.left, self.num_steps, self.restored = state.left, state.num_steps, "restored "

    def close(self) -> None:
        pass

    def _fail(self, step: str) -> None:
        what = self.task.get("fails", {}).get(step)
        if self.task.get("once"):
            try:  # of several processes that come at once, one is the first
                (Path(self.task["once"]) / f"{self.seed}-{step}").touch(exist_ok=False)
            except FileExistsError:
                return
        if what == "raise":
            raise RuntimeError(f"broken at step {step}")
        if what == "hang":
            time.sleep(3600)
        if what == "exit":
            os._exit(3)


class SlowCountdown(Countdown):
    """The same, async."""

    async def step(self, action: str) -> StepResult:  # type: ignore[override]
        await asyncio.sleep(float(self.task.get("delay_s", 0.0)))
        return super().step(action)


class Plain(Countdown):
    """The same, without snapshots."""

    snapshot = restore = None  # type: ignore[assignment]
