"""A reward that another reward calls by name: which completions are right, or what each step is worth."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from vlrl.errors import ConfigError
from vlrl.scoring.functions import RewardFunction, as_value, find_reward


class InnerReward:
    """A plain reward with its options; made once a process by `inner_reward`."""

    def __init__(self, function: RewardFunction) -> None:
        self._function = function

    def __call__(self, completion: str, answer: Any, context: Mapping[str, Any]) -> float:
        """Its value, given what of the context it asks for.

        Raises:
            ValueError: if it finds the sample unusable, or returns no finite number.
        """
        wanted = {name: value for name, value in context.items() if self._function.wants(name)}
        returned = self._function.invoke(completion, answer, wanted)
        return as_value(returned, self._function.label)[0]


def inner_reward(name: str, options: Mapping[str, Any] | None, asker: str) -> InnerReward:
    """Find a reward that `asker` calls itself.

    Raises:
        ConfigError: for an unknown name or option, or one that is not a plain function.
    """
    return _found(name, json.dumps(options or {}, sort_keys=True), asker)


@functools.lru_cache(maxsize=32)
def _found(name: str, options: str, asker: str) -> InnerReward:
    function = find_reward(name, json.loads(options))
    if function.in_driver or function.declared.batched:
        raise ConfigError(f"{asker}: {name!r} must be a plain function, not async, batched or gpu")
    return InnerReward(function)
