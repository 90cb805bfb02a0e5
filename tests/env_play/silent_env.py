"""An environment without an oracle."""

from __future__ import annotations

from typing import Any

from vlrl.protocols import Observation, StepResult


class Silent:
    """Ends at once."""

    system_prompt = ""

    def reset(self, task: Any, seed: int) -> Observation:
        return Observation("say something")

    def step(self, action: str) -> StepResult:
        return StepResult(Observation("thanks"), 1.0, True, False, {"success": True})

    def close(self) -> None:
        pass
