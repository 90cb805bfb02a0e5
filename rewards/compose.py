"""The run's reward: a weighted sum of plug-ins, every part kept by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from vlrl.errors import ConfigError
from vlrl.options import RewardConfig
from vlrl.registry import resolve
from vlrl.types import Score, Trajectory

Term: TypeAlias = tuple[str, RewardConfig, Callable[..., Any]]


class RewardFailure(Exception):
    """A plug-in raised or returned something that is no number; law 7: not a reward."""


class ComposedReward:
    """total = Σ_i weight_i · reward_i(completion, answer, …), over the rewards of the sample's source."""

    def __init__(
        self, configs: Sequence[RewardConfig], by_source: Mapping[str, Sequence[RewardConfig]] | None = None
    ) -> None:
        """Find the plug-ins.

        Args:
            configs: the run's rewards.
            by_source: name of a data source → the rewards of its samples; empty means the run's.

        Raises:
            ConfigError: for an unknown name, an option no reward takes, or samples without any reward.
        """
        own = {source: rewards for source, rewards in (by_source or {}).items() if rewards}
        if not configs and len(own) < len(by_source or {"": ()}):
            raise ConfigError("rewards is empty; give at least one, for instance - name: answer_exact")
        self._terms = _terms(configs)
        self._own_terms = {source: _terms(rewards) for source, rewards in own.items()}

    def first_part(self, source: str) -> str:
        """Name of the first reward of a source's samples."""
        return self._own_terms.get(source, self._terms)[0][0]

    async def score(self, trajectory: Trajectory) -> Score:
        """Score a finished trajectory.

        Raises:
            RewardFailure: naming the reward, the sample and what went wrong.
        """
        total, parts = 0.0, {}
        for name, config, function in self._own_terms.get(trajectory.sample.source, self._terms):
            value = await self._call(name, function, config.options, trajectory)
            named = value if isinstance(value, Mapping) else {name: value}
            where = f"reward {name!r}, sample {trajectory.sample.id!r}"
            if not named:
                raise RewardFailure(f"{where}: returned no parts")
            for part, number in named.items():
                if not isinstance(number, Real | np.bool_) or not math.isfinite(number):
                    raise RewardFailure(f"{where}: {part}={number!r}")
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


def _terms(configs: Sequence[RewardConfig]) -> list[Term]:
    """The plug-ins of a list of rewards under names of their own."""
    terms: list[Term] = []
    for config in configs:
        function = resolve("rewards", config.name)
        _require_options(config, function)
        short = config.name.rsplit(":", 1)[-1]
        namesakes = sum(c.name.rsplit(":", 1)[-1] == short for _, c, _ in terms)
        terms.append((f"{short}_{namesakes + 1}" if namesakes else short, config, function))
    return terms


def _accepted(function: Callable[..., Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """The context keywords this function asks for by name; all of them if it takes **keywords."""
    parameters = list(inspect.signature(function).parameters.values())
    filled = {p.name for p in parameters[:2]}  # completion and answer, whatever the author calls them
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = {p.name for p in parameters}
    return {k: v for k, v in context.items() if k not in filled and (takes_any or k in known)}


def _require_options(config: RewardConfig, function: Callable[..., Any]) -> None:
    """Law 9: raise ConfigError for an option that the function would never see."""
    for key in config.options.keys() - _accepted(function, config.options).keys():
        raise ConfigError(
            f"reward {config.name!r} takes no option {key!r}; its parameters are "
            f"{', '.join(inspect.signature(function).parameters)}"
        )
