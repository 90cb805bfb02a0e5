"""Gymnasium vector environments: several episodes share one, each as an environment of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from vlrl.envs.adapters.gymnasium.env import checked, make, reset_arguments, running
from vlrl.envs.adapters.gymnasium.grammar import grammar_of
from vlrl.envs.adapters.gymnasium.spaces import NoAction
from vlrl.envs.adapters.gymnasium.vector_server import Act, Reset, ServerOptions, VectorServer, take_slot
from vlrl.envs.adapters.turns import Episode, Showing, prompt, tagged
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult

ADAPTER = "gymnasium_vector"


class GymnasiumVector:
    """One member of a vector environment: its episode is that of "gymnasium" with the same seed and actions.

    A step waits until all members of the same event loop have given their actions, or wait_s has passed; then
    those are done in one call. Worth it where `mode: async` steps in processes. A failure of one
    sub-environment is one of all who were in that call.
    """

    def __init__(
        self,
        id: str,
        num_envs: int = 8,
        mode: Literal["sync", "async"] = "async",
        wait_s: float = 0.02,
        kwargs: Mapping[str, Any] | None = None,
        actions: Mapping[str, Any] | Sequence[str] | None = None,
        image_size: int | Sequence[int] | None = None,
        text: str = "",
        success: Mapping[str, Any] | None = None,
        instructions: str = "",
    ) -> None:
        """Choose; a vector environment is made when the first member is reset, closed after the last.

        Args:
            id: as gymnasium.make_vec takes it.
            num_envs: sub-environments of one vector environment; more members than that share a second one.
            mode: sub-environments one after the other, or in a process each. Those that an environment
                brings itself (vector_entry_point) draw from one generator, so that an episode could not be
                repeated by its seed; they are not used.
            wait_s: longest wait for the others.
            kwargs: the environment's own arguments.
            actions: see "gymnasium", as are the ones below.
            image_size: of the images.
            text: of the observations.
            success: when an episode is one.
            instructions: for the system prompt.

        Raises:
            ConfigError: for a wrong option.
        """
        if mode not in ("sync", "async"):
            raise ConfigError(f"env {ADAPTER}: option mode={mode!r}; give sync or async")
        if type(num_envs) is not int or num_envs < 1:
            raise ConfigError(f"env {ADAPTER}: option num_envs={num_envs!r}; give a whole number from 1")
        if not 0 <= wait_s < float("inf"):
            raise ConfigError(f"env {ADAPTER}: option wait_s={wait_s!r}; give seconds from 0")
        self._options = ServerOptions(id, dict(kwargs or {}), num_envs, mode, wait_s)
        self._showing = Showing(ADAPTER, image_size, text, success)
        self.grammar = grammar_of(_action_space(self._options), actions, ADAPTER)
        self.system_prompt = prompt(instructions, self.grammar)
        self._slot: tuple[VectorServer, int] | None = None
        self._episode: Episode | None = None

    async def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode; see "gymnasium"."""
        arguments = reset_arguments(task, seed, ADAPTER)
        if self._slot is None:
            self._slot = take_slot(self._options)
        server, slot = self._slot
        turn = await server.ask(slot, Reset(**arguments))
        self._episode = Episode(self._showing, self.grammar)
        return self._episode.begin(turn)

    async def step(self, action: str) -> StepResult:
        """Apply the last <action>…</action> of a text, together with other members' actions.

        Raises:
            RuntimeError: before `reset` and after the end.
        """
        episode = running(self._episode, ADAPTER)
        try:
            parsed = episode.read(action)
        except NoAction as error:
            return episode.refuse(error)
        assert self._slot is not None
        server, slot = self._slot
        return episode.after(await server.ask(slot, Act(parsed)))

    def random_action(self, rng: np.random.Generator) -> str:
        """Any action of the grammar."""
        return tagged(self.grammar, self.grammar.sample(rng))

    def findings(self) -> list[str]:
        """What Gymnasium's own checker says of a fresh copy of the sub-environment."""
        return checked(self._options.id, self._options.kwargs)

    async def close(self) -> None:
        """Give the slot back; the last member closes the vector environment."""
        place, self._slot, self._episode = self._slot, None, None
        if place is not None:
            await place[0].leave(place[1])


_spaces: dict[str, Any] = {}


def _action_space(options: ServerOptions) -> Any:
    """The action space, of an environment that is made for it once."""
    if options.key not in _spaces:
        env = make(options.id, options.kwargs, ADAPTER)
        _spaces[options.key] = env.action_space
        env.close()
    return _spaces[options.key]
