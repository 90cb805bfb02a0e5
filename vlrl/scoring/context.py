"""What a reward is given of a trajectory: what it asks for by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vlrl.coordinates import Canvas
from vlrl.scoring.functions import CONTEXT_NAMES, RewardFunction
from vlrl.types import Trajectory


def context_of(trajectory: Trajectory, step: int, function: RewardFunction) -> dict[str, Any]:
    """What a reward asks of a trajectory by name, and no more: it may be sent to another process."""
    context = {key: value for key, value in trajectory.sample.metadata.items() if function.wants(key)}
    for name in CONTEXT_NAMES & function.wanted:
        if function.wants(name):
            context[name] = _GIVEN[name](trajectory, step)
    return context


_GIVEN: Mapping[str, Callable[[Trajectory, int], Any]] = {
    "prompt": lambda trajectory, step: trajectory.sample.messages,
    "media": lambda trajectory, step: trajectory.media,
    "canvases": lambda trajectory, step: tuple(Canvas.of(media) for media in trajectory.media),
    "sample": lambda trajectory, step: trajectory.sample,
    "trajectory": lambda trajectory, step: trajectory,
    "turns": lambda trajectory, step: trajectory.turns,
    "completion_ids": lambda trajectory, step: trajectory.action_ids,
    "num_tokens": lambda trajectory, step: trajectory.num_action_tokens,
    "episode_return": lambda trajectory, step: trajectory.episode_return,
    "success": lambda trajectory, step: bool(trajectory.info.get("success", False)),
    "step": lambda trajectory, step: step,
}
