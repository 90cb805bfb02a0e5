"""The run's reward: a weighted sum of plug-ins, every part kept by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from vlrl.errors import ConfigError
from vlrl.options import RewardConfig
from vlrl.registry import resolve
from vlrl.types import Score, Trajectory


class RewardFailure(Exception):
    """A plug-in raised or returned something that is no number; law 7: not a reward."""


class ComposedReward:
    """total = Σ_i weight_i · reward_i(completion, answer, …)."""

    def __init__(self, configs: Sequence[RewardConfig]) -> None:
        if not configs:
            raise ConfigError("rewards is empty; give at least one, for instance - name: answer_exact")
        self._terms = [(c, resolve("rewards", c.name)) for c in configs]

    async def score(self, trajectory: Trajectory) -> Score:
        """Score a finished trajectory.

        Raises:
            RewardFailure: naming the reward, the sample and what went wrong.
        """
        total, parts = 0.0, {}
        for config, function in self._terms:
            name = config.name.rsplit(":", 1)[-1]
            value = await self._call(name, function, config.options, trajectory)
            named = value if isinstance(value, Mapping) else {name: value}
            for part, number in named.items():
                if not isinstance(number, int | float) or not math.isfinite(number):
                    raise RewardFailure(
                        f"reward {name!r}, sample {trajectory.sample.id!r}: {part}={number!r}"
                    )
                parts[part] = float(number)
                total += config.weight * float(number)
        return Score(total, parts)

    async def _call(
        self, name: str, function: Callable[..., Any], options: Mapping[str, Any], trajectory: Trajectory
    ) -> Any:
        sample = trajectory.sample
        context: dict[str, Any] = {
            **sample.metadata,
            "sample": sample,
            "prompt": sample.messages,
            "media": trajectory.media,
            "trajectory": trajectory,
            **options,
        }
        try:
            value = function(trajectory.completion, sample.answer, **_accepted(function, context))
            return await value if isinstance(value, Awaitable) else value
        except Exception as error:  # a stranger's code: whatever it raises is a failure of this sample
            raise RewardFailure(
                f"reward {name!r}, sample {sample.id!r}: {type(error).__name__}: {error}"
            ) from error


def _accepted(function: Callable[..., Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """The context keywords this function asks for by name; all of them if it takes **keywords."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return dict(context)
    return {key: value for key, value in context.items() if key in parameters}
