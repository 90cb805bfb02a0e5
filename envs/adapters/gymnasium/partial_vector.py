"""A sub-environment of a Gymnasium vector environment that moves only when its own episode does.

Gymnasium's step moves every sub-environment. This wrapper adds a flag to the action: without it, nothing
moves. What happened travels in the info, the episode's end too, so that no autoreset mode ever acts.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from vlrl.envs.adapters.gymnasium.env import draw
from vlrl.envs.adapters.turns import AdapterTurn

HELD = "vlrl held"
"""Reset option that leaves everything as it is: a vector environment's first reset must be of all."""


class HoldableEnv(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
    """The wrapper; {"moves": 0} holds the environment, {"moves": 1, "action": …} steps it."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.action_space = spaces.Dict({"moves": spaces.Discrete(2), "action": env.action_space})
        self._shown = env.observation_space.sample()  # of the right shape; nobody reads it

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset it, with the Turn in info["turn"]."""
        if options and HELD in options:
            return self._shown, {}
        self._shown, info = self.env.reset(seed=seed, options=options or None)
        return self._shown, {"turn": AdapterTurn(self._shown, self._image(), info=info)}

    def step(self, action: Any) -> Any:
        """Step or hold it, with the Turn in info["turn"] of one that moved; never ends."""
        if not action["moves"]:
            return self._shown, 0.0, False, False, {}
        self._shown, reward, terminated, truncated, info = self.env.step(action["action"])
        turn = AdapterTurn(self._shown, self._image(), float(reward), bool(terminated), bool(truncated), info)
        return self._shown, turn.reward, False, False, {"turn": turn}

    def _image(self) -> Any:
        return draw(self.env, self.env.spec.id if self.env.spec else repr(self.env))


class PartialVector:
    """A vector environment of which some sub-environments (slots) move while the others stay."""

    def __init__(self, id: str, kwargs: dict[str, Any], num_envs: int, mode: str) -> None:
        # The processes of "async" are started again: a fork of a process that has threads may hang.
        vector_kwargs = {"context": "spawn"} if mode == "async" else {}
        self._vector = gymnasium.make_vec(
            id, num_envs, mode, vector_kwargs, wrappers=[HoldableEnv], render_mode="rgb_array", **kwargs
        )
        self._space = self._vector.single_action_space
        self._held = {"moves": 0, "action": self._space["action"].sample()}  # of the right type, never played
        self._vector.reset(options={HELD: True})

    def reset(self, seeds: dict[int, int], options: dict[str, Any] | None) -> dict[int, AdapterTurn]:
        """Start episodes in slots (slot → seed), all with the same options."""
        mask = np.isin(np.arange(self._vector.num_envs), list(seeds))
        all_seeds = [seeds.get(slot) for slot in range(self._vector.num_envs)]
        _, infos = self._vector.reset(seed=all_seeds, options={**(options or {}), "reset_mask": mask})
        return {slot: infos["turn"][slot] for slot in seeds}

    def step(self, actions: dict[int, Any]) -> dict[int, AdapterTurn]:
        """Step some of the slots (slot → action)."""
        rows = [
            {"moves": 1, "action": actions[slot]} if slot in actions else self._held
            for slot in range(self._vector.num_envs)
        ]
        batch = concatenate(self._space, rows, create_empty_array(self._space, n=len(rows)))
        *_, infos = self._vector.step(batch)
        return {slot: infos["turn"][slot] for slot in actions}

    def close(self) -> None:
        """Close the vector environment, and end its processes."""
        self._vector.close()
